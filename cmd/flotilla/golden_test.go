package main

import "github.com/flotilla-io/flotilla/cmd/flotilla/commandtest"

var golden = commandtest.Golden("testdata")
