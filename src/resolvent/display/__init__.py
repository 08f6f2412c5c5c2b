"""What people look at: tables and progress bars on a terminal."""
