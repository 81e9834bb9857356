"""A rule that refuses finds its options in every spelling; one that lets pass compares words."""

import pytest

from adjourn.core.policy.judgement import Action
from tests.unit.policies import judged


def action_of(rule: str, command: str, *, action: str = "never") -> Action:
    words = ", ".join(f'"{word}"' for word in rule.split())
    return judged(f'[[rule]]\nargs = [{words}]\naction = "{action}"\n', *command.split()).action


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("rm -rf **", "rm -fr x"),
        ("rm -rf **", "rm -r -f x"),
        ("rm -rf **", "rm -f x -r"),
        ("rm -rf **", "rm -Rf x"),
        ("rm -rf **", "rm --recursive --force x"),
        ("rm -rf **", "rm --force -vr x"),
        ("rm -rf **", "rm --recurs --fo x"),
        ("rm -rf **", "rm x -rvf -- y"),
        ("rm --recursive **", "rm -R x"),
        ("rm -rf /", "rm -r -f / --no-preserve-root"),
        ("git push --force **", "git push -f"),
        ("git push --force **", "git push -uf origin"),
        ("git push --force **", "git push --forc origin"),
        ("git push --force **", "git push origin +main"),
        ("git push -f **", "git push origin --force"),
        ("git branch -D **", "git branch -d -f x"),
        ("git branch -D **", "git branch --delete --force x"),
        ("git commit --no-verify **", "git commit -nm x"),
        ("chmod -R **", "chmod 777 --recursive /"),
        ("kubectl delete -n prod **", "kubectl -n prod delete pod x"),
        ("kubectl delete -n prod **", "kubectl delete pod x -nprod"),
        ("kubectl delete --namespace=prod **", "kubectl delete pod x --namespace prod"),
        ("kubectl delete --namespace prod **", "kubectl --namespace=prod delete pod x"),
        ("kubectl delete --namespace prod **", "kubectl delete pod x -n prod"),
        ("terraform apply -auto-approve **", "terraform apply --auto-approve=true"),
        ("docker rm -f **", "docker rm --force box"),
    ],
)
def test_a_rule_that_refuses_finds_its_options_in_every_spelling(rule: str, command: str) -> None:
    assert action_of(rule, command) is Action.NEVER


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("rm -rf **", "rm -r x"),
        ("rm -rf **", "rm -f x"),
        ("rm -rf **", "rm rf x"),
        ("git push --force **", "git push --follow-tags"),
        ("git push -f **", "git push --follow-tags"),
        ("git commit --amend **", "git commit -am x"),
        ("git branch -D **", "git branch -d x"),
        ("kubectl delete -n prod **", "kubectl delete pod prod -n test"),
        ("find -delete **", "find -empty -ls -depth"),
        ("terraform apply -destroy **", "terraform apply -refresh-only"),
    ],
)
def test_other_options_are_other_options(rule: str, command: str) -> None:
    assert action_of(rule, command) is Action.PROMPT


@pytest.mark.parametrize(
    "command", ["rm -fr x", "rm -r -f x", "rm --recursive --force x", "/bin/rm -rf x", "rm -rfv x"]
)
def test_a_rule_that_lets_pass_compares_words(command: str) -> None:
    assert action_of("rm -rf **", "rm -rf x", action="auto") is Action.AUTO
    assert action_of("rm -rf **", command, action="auto") is Action.PROMPT
