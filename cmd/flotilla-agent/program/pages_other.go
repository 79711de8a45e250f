//go:build !linux

package program

// unloadProgram is left to the system.
func unloadProgram() {}
