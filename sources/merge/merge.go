package merge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla-io/flotilla/sources/artifact"
)

// mostLines is how many lines of files that both sides have changed are compared, of all files together.
const mostLines = 20_000

// ConflictError says that two commits cannot be merged.
type ConflictError struct {
	// Paths that both have changed, sorted; at least one.
	Paths []string
}

// Error implements error. Paths are foreign, and not in it.
func (e *ConflictError) Error() string {
	if len(e.Paths) == 1 {
		return "both sides have changed the same lines of a file"
	}
	return fmt.Sprintf("both sides have changed the same lines of %d files", len(e.Paths))
}

// Files returns what merging theirs into ours makes, both of which come from base. Errors: ConflictError. It shares the bytes of
// files.
func Files(base, ours, theirs artifact.Files) (artifact.Files, error) {
	out := maps.Clone(ours)
	if out == nil {
		out = artifact.Files{}
	}
	left := mostLines
	var conflicts []string
	for _, name := range slices.Sorted(maps.Keys(union(base, theirs))) {
		was, hadBase := base[name]
		our, inOurs := ours[name]
		their, inTheirs := theirs[name]
		switch {
		case hadBase == inTheirs && equal(was, their): // they did not change it
		case inOurs == inTheirs && equal(our, their): // both did the same
		case inOurs == hadBase && equal(our, was): // we did not change it
			if delete(out, name); inTheirs {
				out[name] = their
			}
		case hadBase && inOurs && inTheirs && !was.Link && !our.Link && !their.Link:
			data, merged := lines(was.Data, our.Data, their.Data, &left)
			if !merged {
				conflicts = append(conflicts, name)
				continue
			}
			executable := our.Executable
			if our.Executable == was.Executable {
				executable = their.Executable
			}
			out[name] = artifact.File{Data: data, Executable: executable}
		default:
			conflicts = append(conflicts, name)
		}
	}
	if len(conflicts) > 0 {
		return nil, &ConflictError{Paths: conflicts}
	}
	return out, nil
}

func union(all ...artifact.Files) artifact.Files {
	out := artifact.Files{}
	for _, files := range all {
		maps.Copy(out, files)
	}
	return out
}

func equal(a, b artifact.File) bool {
	return a.Link == b.Link && a.Executable == b.Executable && bytes.Equal(a.Data, b.Data)
}
