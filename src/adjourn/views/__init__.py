"""What people see, laid out once for every surface: blocks of lines with roles."""
