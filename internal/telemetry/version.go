package telemetry

import (
	"runtime"
	"runtime/debug"
)

// Version is what a program answers to --version.
type Version struct {
	// Program is the version of this program, "devel" when it was built from a
	// work tree without a tag.
	Program string `json:"program"`
	// Commit is the revision that it was built from; empty when unknown.
	Commit string `json:"commit,omitempty"`
	// Go is the version of the Go toolchain.
	Go string `json:"go"`
}

// BuildVersion reads the version that the build recorded. The argument is the
// one that the linker set, and may be empty.
func BuildVersion(linked string) Version {
	v := Version{Program: linked, Go: runtime.Version()}
	info, ok := debug.ReadBuildInfo()
	if ok {
		for _, setting := range info.Settings {
			if setting.Key == "vcs.revision" {
				v.Commit = setting.Value
			}
		}
	}
	if v.Program == "" {
		v.Program = "devel"
	}
	return v
}

// String is one line for a person.
func (v Version) String() string {
	out := v.Program
	if v.Commit != "" {
		out += " (" + v.Commit + ")"
	}
	return out + " " + v.Go
}
