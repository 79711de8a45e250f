package builder

import (
	"context"
	"slices"
	"sync"

	"github.com/flotilla-io/flotilla/sources/artifact"
	"github.com/flotilla-io/flotilla/sources/build"
)

// Many Kustomizations of one source are built from the same artifact, one after the other: the artifacts that
// were opened last are kept for the next build.
const (
	mostKept = 2
	// largestKept is the largest size of an artifact that is kept, in bytes of its files.
	largestKept = 16 << 20
)

// trees opens artifacts, each once for all that ask at about the same time.
type trees struct {
	artifacts Artifacts

	mu   sync.Mutex
	kept []*opened // the latest first
}

// opened is an artifact that was opened, or is about to be.
type opened struct {
	digest string
	once   sync.Once
	tree   *build.Tree
	err    error
}

// open returns the files of an artifact. One caller opens it for all, so that its context must not end
// the others' work.
func (t *trees) open(ctx context.Context, digest string) (*build.Tree, error) {
	entry := t.entry(digest)
	entry.once.Do(func() {
		var files artifact.Files
		if files, entry.err = t.artifacts.Open(context.WithoutCancel(ctx), digest); entry.err != nil {
			t.drop(entry)
			return
		}
		contents, size := files.Contents(), 0
		for _, data := range contents {
			size += len(data)
		}
		if entry.tree = build.NewTree(contents).WithLinks(files.Links()); size > largestKept {
			t.drop(entry)
		}
	})
	return entry.tree, entry.err
}

func (t *trees) entry(digest string) *opened {
	t.mu.Lock()
	defer t.mu.Unlock()
	for n, entry := range t.kept {
		if entry.digest == digest {
			t.kept = slices.Insert(slices.Delete(t.kept, n, n+1), 0, entry)
			return entry
		}
	}
	entry := &opened{digest: digest}
	t.kept = slices.Insert(t.kept, 0, entry)
	t.kept = t.kept[:min(len(t.kept), mostKept)]
	return entry
}

func (t *trees) drop(entry *opened) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = slices.DeleteFunc(t.kept, func(e *opened) bool { return e == entry })
}
