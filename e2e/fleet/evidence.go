package fleet

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/internal/localfleet"
)

// How much is shown of each: whoever reads it has nothing but the output of a test.
const (
	shownObjects = 60
	shownEvents  = 40
	shownLines   = 40 // of the control plane's log
	shownMore    = 15 // of another's
	longestLine  = 600
)

// evidenceTimeout bounds one look at a fleet that may be the reason for the failure.
const evidenceTimeout = 30 * time.Second

// explained are the kinds whose conditions say how far things are.
var explained = []schema.GroupVersionKind{
	{Group: "cluster.karmada.io", Version: "v1alpha1", Kind: "Cluster"},
	{Version: "v1", Kind: "Namespace"},
	{Group: "source.toolkit.fluxcd.io", Version: "v1", Kind: "GitRepository"},
	{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Kind: "Kustomization"},
	{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ResourceBinding"},
	{Group: "work.karmada.io", Version: "v1alpha2", Kind: "ClusterResourceBinding"},
	{Group: "work.karmada.io", Version: "v1alpha1", Kind: "Work"},
}

// Evidence says what the fleet is doing: how far the objects of the test's namespaces
// are, or of all if there are none of its name, what was reported of them, and what the
// programs logged last.
func (f *Fleet) Evidence(t testing.TB) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), evidenceTimeout)
	defer cancel()
	var out strings.Builder
	root, _, _ := strings.Cut(t.Name(), "/")
	own := f.namespacesOf(ctx, strings.Trim(strings.ToLower(root), "-"))
	section(&out, "objects", f.objects(ctx, own), shownObjects)
	section(&out, "events", f.events(ctx, own), shownEvents)
	section(&out, "the log of the control plane on "+strings.Join(own, ", "), mentions(logged(f.Hub), own), shownLines)
	section(&out, "the log of the control plane", logged(f.Hub), shownLines)
	for _, p := range f.others() {
		section(&out, "the log of "+p.Name, logged(p), shownMore)
	}
	return out.String()
}

// section adds the last of some lines.
func section(out *strings.Builder, title string, list []string, most int) {
	fmt.Fprintf(out, "--- %s", title)
	if left := len(list) - most; left > 0 {
		fmt.Fprintf(out, " (%d before these)", left)
		list = list[left:]
	}
	out.WriteString("\n")
	for _, line := range list {
		if len(line) > longestLine {
			line = line[:longestLine] + "…"
		}
		out.WriteString(line + "\n")
	}
}

// namespacesOf returns the namespaces of a test, by their names; if there are none,
// those that are nobody's but a test's.
func (f *Fleet) namespacesOf(ctx context.Context, test string) []string {
	var list corev1.NamespaceList
	if err := f.Client.List(ctx, &list); err != nil {
		return nil
	}
	var own, others []string
	for _, ns := range list.Items {
		switch {
		case strings.HasPrefix(ns.Name, test):
			own = append(own, ns.Name)
		case !strings.HasPrefix(ns.Name, "kube-") && !strings.HasPrefix(ns.Name, "karmada-"):
			others = append(others, ns.Name)
		}
	}
	if len(own) > 0 {
		return own
	}
	return others
}

// objects returns a line for each object that says how far it is. Of Works there are
// those that are not applied as they should be.
func (f *Fleet) objects(ctx context.Context, namespaces []string) []string {
	var out []string
	for _, kind := range explained {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(kind)
		if err := f.Client.List(ctx, &list); err != nil {
			out = append(out, fmt.Sprintf("%s: %v", kind.Kind, err))
			continue
		}
		for i := range list.Items {
			obj := &list.Items[i]
			of := obj.GetNamespace()
			if kind.Kind == "Namespace" {
				of = obj.GetName()
			}
			line := describe(obj)
			shown := slices.Contains(namespaces, of) || of == ""
			if kind.Kind == "Work" {
				shown = strings.Contains(line, "=False") || strings.Contains(line, "deleted ")
			}
			if shown {
				out = append(out, line)
			}
		}
	}
	return out
}

// describe says on one line what an object waits for.
func describe(obj *unstructured.Unstructured) string {
	line := fmt.Sprintf("%s %s generation %d", obj.GetKind(), client.ObjectKeyFromObject(obj), obj.GetGeneration())
	if at := obj.GetDeletionTimestamp(); at != nil {
		line += fmt.Sprintf(", deleted %s ago, held by %v", time.Since(at.Time).Round(time.Second), obj.GetFinalizers())
	}
	conditions, _, _ := unstructured.NestedSlice(obj.Object, "status", "conditions") // none is none
	for _, entry := range conditions {
		c, _ := entry.(map[string]any)
		line += fmt.Sprintf("; %v=%v %v: %v", c["type"], c["status"], c["reason"], c["message"])
	}
	return strings.Join(strings.Fields(line), " ")
}

func (f *Fleet) events(ctx context.Context, namespaces []string) []string {
	var out []string
	for _, namespace := range namespaces {
		var list corev1.EventList
		if err := f.Client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			out = append(out, err.Error())
			continue
		}
		slices.SortFunc(list.Items, func(a, b corev1.Event) int { return a.LastTimestamp.Compare(b.LastTimestamp.Time) })
		for _, e := range list.Items {
			out = append(out, fmt.Sprintf("%s %s %s/%s %s: %s", e.LastTimestamp.UTC().Format(time.TimeOnly), e.InvolvedObject.Kind, namespace, e.InvolvedObject.Name, e.Reason, e.Message))
		}
	}
	return out
}

// others are the members.
func (f *Fleet) others() []*localfleet.Process {
	var all []*localfleet.Process
	for _, name := range slices.Sorted(maps.Keys(f.Members)) {
		all = append(all, f.Members[name])
	}
	return all
}

func logged(p *localfleet.Process) []string {
	log, err := os.ReadFile(p.Log)
	if err != nil {
		return []string{err.Error()}
	}
	return strings.Split(strings.TrimSpace(string(log)), "\n")
}

// mentions returns the lines that name one of the words.
func mentions(all, words []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(line string) bool {
		return !slices.ContainsFunc(words, func(word string) bool { return strings.Contains(line, word) })
	})
}
