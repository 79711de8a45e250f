package lineage

import (
	sourcev1 "github.com/fluxcd/source-controller/api/v1"

	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Included is a source whose files are part of the artifact of another.
type Included struct {
	Object
	Revision string `json:"revision"`
	// Path is that of the file there.
	Path string `json:"path"`
}

// From sets where the file is included from, if it came so into the artifact of the source. A file that the clone of the repository
// has is its own.
func (f *File) From(source origins.Object) {
	r, ok := source.(*sourcev1.GitRepository)
	if !ok || f.LastChange != nil {
		return
	}
	if by, of, there := inclusion.Origin(r, f.Path); by != nil {
		f.Included = &Included{
			Object:   Object{APIVersion: sourcev1.GroupVersion.String(), Kind: sourcev1.GitRepositoryKind, Namespace: r.Namespace, Name: by.GitRepositoryRef.Name},
			Revision: of.Revision, Path: there,
		}
	}
}
