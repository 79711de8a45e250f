package lineage

import (
	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/reconciler/origins"
)

// Submodule is a submodule of the repository that a file is from.
type Submodule struct {
	// Directory is where the repository has it.
	Directory string `json:"directory"`
	URL       string `json:"url"`
	// Commit is the commit of the submodule, and Path the path of the file in it.
	Commit string `json:"commit"`
	Path   string `json:"path"`
}

// FromSubmodule sets of which submodule the file is, if it is of one and the artifact of the source, which says so, is still of the revision.
func (f *File) FromSubmodule(source origins.Object, revision string) {
	a := source.GetArtifact()
	if a == nil || a.Revision != revision || f.Path == "" {
		return
	}
	if of, there, is := inclusion.OfSubmodule(a.Metadata, f.Path); is {
		f.Submodule = &Submodule{Directory: of.Path, URL: of.URL, Commit: of.Commit, Path: there}
	}
}
