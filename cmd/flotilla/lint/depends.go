package lint

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/policies/propagation"
)

// kustomization is a Kustomization from a file, or one that is built by the Kustomization at.
type kustomization struct {
	*kustomizev1.Kustomization
	at *object
	by string
}

// key returns the key of the Kustomization that a reference names.
func (ks kustomization) key(ref kustomizev1.DependencyReference) client.ObjectKey {
	return client.ObjectKey{Namespace: cmp.Or(ref.Namespace, ks.Namespace), Name: ref.Name}
}

// dependencies reports Kustomizations that wait for a missing one, or for each other in a circle.
func dependencies(l *linter, all []kustomization) {
	byKey := map[client.ObjectKey]kustomization{}
	for _, ks := range all {
		key := client.ObjectKeyFromObject(ks.Kustomization)
		if _, known := byKey[key]; !known {
			byKey[key] = ks
		}
	}
	for _, ks := range all {
		for i, ref := range ks.Spec.DependsOn {
			if _, known := byKey[ks.key(ref)]; !known && ref.Name != "" {
				waits(l, ks, fmt.Sprintf("spec.dependsOn[%d]", i), fmt.Sprintf("Kustomization %s is not in these files, and this one waits for it%s: add it, or ignore this if it is elsewhere",
					ks.key(ref), meant(ks.key(ref), byKey)))
			}
		}
	}
	for _, circle := range circles(byKey) {
		var names []string
		for _, key := range circle {
			names = append(names, key.String())
		}
		waits(l, byKey[circle[0]], "spec.dependsOn", "waits for itself: "+strings.Join(append(names, names[0]), " waits for ")+": remove one spec.dependsOn of these")
	}
}

// waits adds a warning about a Kustomization.
func waits(l *linter, ks kustomization, path, message string) {
	at := ks.at
	if ks.by != "" {
		made := *at
		made.by, made.gvk, made.name = ks.by, kustomizev1.GroupVersion.WithKind(kustomizev1.KustomizationKind), ks.Name
		at = &made
	}
	l.add(at, Warning, path, message)
}

// meant returns a suggestion of a Kustomization with a similar name; empty if there is none.
func meant(key client.ObjectKey, known map[client.ObjectKey]kustomization) string {
	return propagation.HintAmong(key, slices.Collect(maps.Keys(known)))
}

// circles returns the circles of Kustomizations that wait for each other, each once, beginning with its first name.
func circles(known map[client.ObjectKey]kustomization) [][]client.ObjectKey {
	byName := func(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }
	keys := make([]client.ObjectKey, 0, len(known))
	for key := range known {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, byName)
	var out [][]client.ObjectKey
	done := map[client.ObjectKey]bool{}
	var way []client.ObjectKey
	var visit func(key client.ObjectKey)
	visit = func(key client.ObjectKey) {
		if at := slices.Index(way, key); at >= 0 {
			circle := slices.Clone(way[at:])
			first := slices.Index(circle, slices.MinFunc(circle, byName))
			out = append(out, slices.Concat(circle[first:], circle[:first]))
			return
		}
		ks, there := known[key]
		if done[key] || !there {
			return
		}
		way = append(way, key)
		for _, ref := range ks.Spec.DependsOn {
			visit(ks.key(ref))
		}
		way, done[key] = way[:len(way)-1], true
	}
	for _, key := range keys {
		visit(key)
	}
	return out
}
