package git

import "fmt"

// NotesRef is the ref of the notes that WriteNote writes; git shows them with
// `git notes --ref=flotilla show` and `git log --show-notes=flotilla`.
const NotesRef = "refs/notes/flotilla"

func checkCommit(commit string) error {
	if !commitHash.MatchString(commit) {
		return fmt.Errorf("%w: commit %q must be 40 lower-case hex digits", ErrRef, commit)
	}
	return nil
}
