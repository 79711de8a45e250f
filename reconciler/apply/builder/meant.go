package builder

import (
	"path"
	"slices"
	"strings"

	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/inclusion"
	"github.com/flotilla-io/flotilla/policies/propagation"
	"github.com/flotilla-io/flotilla/sources/build"
)

const (
	// mostFolders is how many folders are searched for the one that is meant. mostDepth is how many names a path may
	// have that is corrected.
	mostFolders = 1000
	mostDepth   = 16
)

// unfetched returns what to do about a path that is of a submodule without files; empty for one that is not.
func unfetched(leftOut, written string) string {
	submodule := inclusion.LeftOut(leftOut, written)
	if submodule == "" {
		return ""
	}
	return "; " + excerpt.Line(submodule) + " is a submodule, whose files are fetched with spec.recurseSubmodules of the GitRepository alone"
}

// meant returns a hint at the folder that is probably meant by a path that does not exist: the one that differs by
// mistyped names, or else the only one whose path ends in the same names. It is empty if there is none.
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
	return propagation.DidYouMean("." + found)
}

// corrected follows names from the root, each to the folder with the nearest name, and returns the path; empty where
// no name is near.
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

// ending returns the only folder whose path ends in with, among the first mostFolders; empty where none or several do.
func ending(files *build.Tree, with string) string {
	found, dirs := "", []string{"/"}
	for visited := 0; visited < min(len(dirs), mostFolders); visited++ {
		for _, name := range files.Folders(dirs[visited]) {
			dir := path.Join(dirs[visited], name)
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
