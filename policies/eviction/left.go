package eviction

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

const (
	// mostLeft is how many clusters Left names.
	mostLeft = 5
	// mostWhy is how many bytes of a task's reason are quoted: anybody may have
	// written it.
	mostWhy = 256
)

// Left returns a text about which clusters a template has left and why, where it
// runs now, and where it is not healthy yet: "Left cluster west (untolerated
// taint {a:NoExecute}) for {east:3, north:3}, where it is not healthy yet". spec
// is the one before the tasks for ended were removed, placement the clusters as
// text, and ready reports whether a cluster has a healthy copy.
func Left(spec *workv1alpha2.ResourceBindingSpec, ended []string, placement string, ready func(cluster string) bool) string {
	names := slices.Compact(slices.Sorted(slices.Values(ended)))
	parts := make([]string, 0, mostLeft+1)
	for _, name := range names[:min(len(names), mostLeft)] {
		parts = append(parts, strings.TrimSuffix(name+" ("+excerpt.Message(whyLeft(spec, name), mostWhy)+")", " ()"))
	}
	text := "Left cluster " + strings.Join(parts, ", ")
	if len(names) > 1 {
		text = "Left clusters " + strings.Join(parts, ", ")
	}
	if more := len(names) - len(parts); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	text += " for " + placement
	ill := slices.DeleteFunc(namesOf(spec.Clusters), ready)
	switch {
	case len(ill) == 0:
		return text
	case len(ill) == len(spec.Clusters):
		return text + ", where it is not healthy yet"
	}
	text += "; it is not healthy yet in " + strings.Join(ill[:min(len(ill), mostLeft)], ", ")
	if more := len(ill) - mostLeft; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// whyLeft returns why a template had to leave a cluster; empty where another
// cluster was merely better.
func whyLeft(spec *workv1alpha2.ResourceBindingSpec, cluster string) string {
	for i := range spec.GracefulEvictionTasks {
		if task := &spec.GracefulEvictionTasks[i]; task.FromCluster == cluster && !Moves(task) {
			return cmp.Or(task.Message, task.Reason)
		}
	}
	return ""
}
