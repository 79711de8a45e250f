package review

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/codeowners"
	"github.com/flotilla-io/flotilla/policies/review"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// owners are those whom the commit of a branch names for its files, found out once in a pass.
type owners struct {
	mu    sync.Mutex
	begun bool
	file  codeowners.File
	err   error
}

// encrypted begins each value in a file that is encrypted with SOPS. What it says is not compared: stand-ins are on both sides.
const encrypted = "ENC[AES256_GCM,"

// editsOf returns what is known of the files that a change adds, removes or edits, if there are approvals. What the change itself says
// of owners does not count.
func (b *base) editsOf(ctx context.Context, s *state, before, after artifact.Files) (review.Edits, error) {
	var out review.Edits
	if len(s.terms.approvals) == 0 {
		return out, nil
	}
	paths := changed(before, after)
	hides := func(file artifact.File) bool {
		return bytes.Contains(file.Data, []byte(gitopsv1alpha1.PullRequestReviewKind)) || bytes.Contains(file.Data, []byte(encrypted))
	}
	out.All = slices.ContainsFunc(paths, func(path string) bool { return hides(before[path]) || hides(after[path]) })
	if !slices.ContainsFunc(s.terms.approvals, func(a review.Approval) bool { return a.By.CodeOwners }) {
		return out, nil
	}
	file, err := b.owners.once(ctx, s, b.commit.Hash)
	if err != nil {
		return out, err
	}
	out.Owners = review.OfOwners(file, paths)
	return out, nil
}

func (o *owners) once(ctx context.Context, s *state, commit string) (codeowners.File, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.begun {
		return o.file, o.err
	}
	kind, text, err := s.forge.CodeOwners(context.WithoutCancel(ctx), commit) // who comes first must not end it for others
	if err == nil {
		o.file, err = codeowners.Parse(kind, text)
	}
	if o.begun = true; err != nil {
		o.err = fmt.Errorf("CODEOWNERS: %w", err)
	}
	return o.file, o.err
}

// changed returns the paths of files that differ, sorted.
func changed(before, after artifact.Files) []string {
	paths := map[string]bool{}
	for path, file := range after {
		if old, is := before[path]; !is || !equal(old, file) {
			paths[path] = true
		}
	}
	for path := range before {
		if _, is := after[path]; !is {
			paths[path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

func equal(a, b artifact.File) bool {
	return a.Executable == b.Executable && a.Link == b.Link && slices.Equal(a.Data, b.Data)
}
