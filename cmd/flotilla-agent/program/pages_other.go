//go:build !linux

package program

// unloadProgram does nothing on this system.
func unloadProgram() {}
