package lint

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/cmd/flotilla/lint/overlays"
	"github.com/flotilla-io/flotilla/internal/loop"
	"github.com/flotilla-io/flotilla/policies/propagation"
	dependson "github.com/flotilla-io/flotilla/reconciler/apply/dependencies"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
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

// dependencies reports Kustomizations that wait for a missing one, or for each other in a circle. Of files that were given
// by name nothing is said to be missing.
func dependencies(ctx context.Context, l *linter, all []kustomization, results []built) error {
	byKey := map[client.ObjectKey]kustomization{}
	for _, ks := range all {
		key := client.ObjectKeyFromObject(ks.Kustomization)
		if _, known := byKey[key]; !known {
			byKey[key] = ks
		}
	}
	for _, ks := range all {
		for i, ref := range ks.Spec.DependsOn {
			if _, known := byKey[ks.key(ref)]; !known && ref.Name != "" && (ks.at.folder != "" || ks.by != "") {
				waits(l, ks, fmt.Sprintf("spec.dependsOn[%d]", i), fmt.Sprintf("Kustomization %s is not in these files, and this one waits for it%s: add it, or ignore this if it is elsewhere",
					ks.key(ref), meant(ks.key(ref), byKey)))
			}
		}
	}
	inCircles := map[client.ObjectKey]bool{}
	for _, circle := range circles(byKey) {
		var names []string
		for _, key := range circle {
			names = append(names, key.String())
			inCircles[key] = true
		}
		waits(l, byKey[circle[0]], "spec.dependsOn", "waits for itself: "+strings.Join(append(names, names[0]), " waits for ")+": remove one spec.dependsOn of these")
	}
	maps.DeleteFunc(byKey, func(key client.ObjectKey, _ kustomization) bool { return inCircles[key] })
	return awaited(ctx, l, byKey, results)
}

// awaited reports Kustomizations that depend on one which waits for their health. In known there are no circles.
func awaited(ctx context.Context, l *linter, known map[client.ObjectKey]kustomization, results []built) error {
	makes := map[client.ObjectKey][]inventory.Entry{}
	for _, b := range results {
		for _, obj := range b.Objects {
			if ks := overlays.Of(obj.Object, b.Of.Namespace); ks != nil {
				makes[b.key()] = append(makes[b.key()], inventory.Entry{ID: inventory.OfKustomization(client.ObjectKeyFromObject(ks)), Version: kustomizev1.GroupVersion.Version})
			}
		}
	}
	read := func(_ context.Context, key client.ObjectKey) (*kustomizev1.Kustomization, error) {
		ks, there := known[key]
		if !there {
			return nil, apierrors.NewNotFound(schema.GroupResource{Group: kustomizev1.GroupVersion.Group, Resource: "kustomizations"}, key.Name)
		}
		out := ks.DeepCopy()
		out.Status.Inventory = inventory.Record(makes[key])
		return out, nil
	}
	for _, key := range slices.SortedFunc(maps.Keys(known), byName) {
		err := dependson.FindCycle(ctx, known[key].Kustomization, read)
		outcome := loop.As(err, "")
		switch {
		case outcome == nil:
		case outcome.Reason == dependson.ReasonCycle:
			waits(l, known[key], "spec.dependsOn", outcome.Err.Error())
		default:
			return err
		}
	}
	return nil
}

func byName(a, b client.ObjectKey) int { return cmp.Compare(a.String(), b.String()) }

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
