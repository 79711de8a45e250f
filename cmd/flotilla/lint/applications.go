package lint

import (
	"context"
	"path/filepath"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
	"github.com/flotilla-io/flotilla/sources/build"
)

// applications builds the kustomizations of a folder without Kustomizations, which would define what is built.
func (l builds) applications(ctx context.Context, folder string) error {
	found, err := overlays.Standing(ctx, folder)
	if err != nil {
		return err
	}
	for _, a := range found {
		at := &object{file: a.File, doc: build.Document{}}
		switch {
		case a.Outside:
			l.report.add(Finding{File: a.File, Severity: Warning, Message: "was not built, as it takes in files from outside of " + folder +
				": name a folder that holds these, too, or: kustomize build " + filepath.Dir(a.File) + " | flotilla validate -f -"})
			continue
		case a.Err != nil:
			l.report.add(Finding{File: a.File, Severity: Error, Message: "cannot be built: " + a.Err.Error()})
			continue
		}
		l.report.Kustomized++
		var objects []*object
		for _, obj := range a.Objects {
			objects = append(objects, madeAt(obj, at, ", as it is built from "+a.Path))
		}
		if err := l.take(objects); err != nil {
			return err
		}
	}
	return nil
}
