package builder

import (
	"path"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/reconciler/hint"
	"github.com/flotilla-io/flotilla/sources/build"
)

const (
	// mostFolders is how many folders are looked at for the one that is meant, and mostDepth how deep a path may be that
	// is corrected.
	mostFolders = 1000
	mostDepth   = 16
)

// meant says which folder of the files is meant by a path that none has: with what is mistyped in it corrected, or else
// the only one that ends so. It is empty where there is none.
func meant(files *build.Tree, written string) string {
	names := strings.Split(strings.Trim(path.Clean("/"+written), "/"), "/")
	if len(names) > mostDepth || slices.Contains(strings.Split(written, "/"), "..") {
		return ""
	}
	found := corrected(files, names)
	if found == "" {
		found = ending(files, "/"+path.Join(names...))
	}
	if found == "" {
		return ""
	}
	return hint.Behind("." + found)
}

// corrected returns the path of the folder that is meant by names from the root on; empty where one is near none.
func corrected(files *build.Tree, names []string) string {
	dir := "/"
	for _, name := range names {
		folders := files.Folders(dir)
		if !slices.Contains(folders, name) {
			if len(folders) > mostFolders {
				return ""
			}
			name = propagation.Nearest(name, folders)
		}
		if name == "" {
			return ""
		}
		dir = path.Join(dir, name)
	}
	return dir
}

// ending returns the only folder whose path ends so, among as many as are looked at; empty where none does, or several.
func ending(files *build.Tree, with string) string {
	found, dirs := "", []string{"/"}
	for looked := 0; looked < min(len(dirs), mostFolders); looked++ {
		for _, name := range files.Folders(dirs[looked]) {
			dir := path.Join(dirs[looked], name)
			switch {
			case !strings.HasSuffix(dir, with):
			case found != "":
				return ""
			default:
				found = dir
			}
			dirs = append(dirs, dir)
		}
	}
	return found
}
