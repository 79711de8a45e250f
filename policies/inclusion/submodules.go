package inclusion

import (
	"encoding/json"
	"path"
	"strings"

	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
)

// Submodule is a repository whose files are part of a commit.
type Submodule struct {
	// Path is where they are, from the root of the commit.
	Path string `json:"path"`
	// URL is where they were fetched from, without credentials.
	URL string `json:"url"`
	// Commit is the hash of the commit that they are of.
	Commit string `json:"commit"`
}

// mostSubmodules is how much of the submodules is recorded with an artifact, in bytes: of the others it is not known what is of them.
const mostSubmodules = 8 << 10

// RecordSubmodules writes into the metadata of an artifact which submodules are part of it.
func RecordSubmodules(metadata map[string]string, all []Submodule) {
	for n := len(all); n > 0; n-- {
		text, err := json.Marshal(all[:n])
		if err == nil && len(text) <= mostSubmodules {
			metadata[gitopsv1alpha1.SubmodulesKey] = string(text)
			return
		}
	}
}

// RecordLeftOut writes into the metadata of an artifact of which submodules it has no files, by their paths.
func RecordLeftOut(metadata map[string]string, paths []string) {
	for n := len(paths); n > 0; n-- {
		text, err := json.Marshal(paths[:n])
		if err == nil && len(text) <= mostSubmodules {
			metadata[gitopsv1alpha1.SubmodulesLeftOutKey] = string(text)
			return
		}
	}
}

// LeftOut returns the submodule that a folder is of, or is, by what RecordLeftOut has written; empty for none.
func LeftOut(recorded, folder string) string {
	var paths []string
	if json.Unmarshal([]byte(recorded), &paths) != nil {
		return ""
	}
	folder = strings.TrimPrefix(path.Clean("/"+folder), "/") + "/"
	for _, submodule := range paths {
		if strings.HasPrefix(folder, submodule+"/") {
			return submodule
		}
	}
	return ""
}

// OfSubmodule returns the submodule that a file is of, the innermost if there are several, by the metadata of its artifact, and its path
// there; false if it is of none, or that is not known.
func OfSubmodule(metadata map[string]string, file string) (of Submodule, there string, is bool) {
	var all []Submodule
	if json.Unmarshal([]byte(metadata[gitopsv1alpha1.SubmodulesKey]), &all) != nil {
		return of, "", false
	}
	for _, s := range all {
		if rest, within := strings.CutPrefix(file, s.Path+"/"); within && (!is || len(s.Path) > len(of.Path)) {
			of, there, is = s, rest, true
		}
	}
	return of, there, is
}
