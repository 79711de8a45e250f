// Package program is the command of flotilla-agent: its flags, and how the loops of
// push mode are wired to the parts of agent.
//
// In go arguments; out comes an exit code. It decides nothing about clusters or
// workloads.
package program
