package main

import "flag"

// update rewrites the golden files of all commands.
var update = flag.Bool("update", false, "rewrite golden files")
