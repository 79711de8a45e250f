// Package demo runs the example fleet on this machine and shows how it works, for people who
// do not know the project.
//
// In go the path of flotillad and a folder; out come a live table and, at the end, hints
// what to try. It connects to loopback addresses only, writes only below its folder, and
// stops all that it started.
package demo
