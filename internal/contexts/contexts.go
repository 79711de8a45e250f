// Package contexts says which contexts a kubeconfig has, where one was asked for that is not
// there.
//
// In go how a kubeconfig is loaded and the error of it; out comes the error with the names. It
// reads the files that the kubeconfig is made of, and asks no server.
package contexts

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"k8s.io/client-go/tools/clientcmd"

	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// mostNamed is how many contexts are named: more are counted.
const mostNamed = 10

// UnknownError says that a kubeconfig has no context of a name.
type UnknownError struct {
	// Name is the context that was asked for, or that the kubeconfig says is the current one.
	Name string
	// Files are those that the kubeconfig is made of.
	Files []string
	// Known are the contexts that there are, sorted.
	Known []string
}

// Error names the file, and what is in it.
func (e *UnknownError) Error() string {
	if len(e.Files) == 0 {
		return fmt.Sprintf("there is no context %q: no kubeconfig was found; --kubeconfig or $KUBECONFIG names it", e.Name)
	}
	out := fmt.Sprintf("there is no context %q in %s", e.Name, strings.Join(e.Files, ", "))
	switch {
	case len(e.Known) == 0:
		return out + ", and no other"
	case len(e.Known) == 1:
		return out + ": there is " + e.Known[0]
	default:
		return out + ": there are " + excerpt.Names(e.Known, mostNamed)
	}
}

// Explain returns an *UnknownError in the place of err, where that came of a context that the
// kubeconfig lacks: the one asked for, or the current one where that is empty. Other errors,
// and nil, it returns as they are.
func Explain(loader clientcmd.ClientConfig, asked string, err error) error {
	if err == nil || clientcmd.IsEmptyConfig(err) {
		return err
	}
	raw, failed := loader.RawConfig()
	if failed != nil {
		return err
	}
	if asked == "" {
		asked = raw.CurrentContext
	}
	if asked == "" || raw.Contexts[asked] != nil {
		return err
	}
	return &UnknownError{Name: asked, Files: filesOf(loader.ConfigAccess()), Known: slices.Sorted(maps.Keys(raw.Contexts))}
}

// filesOf are the files of a kubeconfig that are there.
func filesOf(access clientcmd.ConfigAccess) []string {
	if access.IsExplicitFile() {
		return []string{access.GetExplicitFile()}
	}
	return slices.DeleteFunc(slices.Clone(access.GetLoadingPrecedence()), func(file string) bool {
		_, err := os.Stat(file)
		return errors.Is(err, fs.ErrNotExist)
	})
}
