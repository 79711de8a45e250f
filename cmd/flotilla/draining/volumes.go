package draining

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/policies/drain"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	volumepolicy "github.com/flotilla-io/flotilla/policies/volumes"
)

// singly is up to how many templates of a kind are read one by one: all of a kind may be many more, and not be the
// caller's to list.
const singly = 10

// volumes has the templates of rows that have volume claims, by row.
type volumes struct {
	templates map[string]*unstructured.Unstructured
	// there are the claims that clusters have kept until now. Those of a template are not among them once it is placed there.
	there volumepolicy.Found
	// notes name the kinds of which nothing is known.
	notes []string
}

// add has a row say what becomes of its data.
func (v volumes) add(row *drain.Row, cluster string) {
	if template := v.templates[row.Key()]; template != nil {
		row.Holds(template, cluster, v.there)
	}
}

// volumesOf reads the templates of rows that may have volume claims.
func volumesOf(ctx context.Context, hub client.Reader, rows []drain.Row) volumes {
	by := map[schema.GroupVersionKind]map[client.ObjectKey]string{}
	for i := range rows {
		if row := &rows[i]; row.HasData() {
			kind := schema.FromAPIVersionAndKind(row.APIVersion, row.Kind)
			if by[kind] == nil {
				by[kind] = map[client.ObjectKey]string{}
			}
			by[kind][client.ObjectKey{Namespace: row.Namespace, Name: row.Name}] = row.Key()
		}
	}
	out := volumes{templates: map[string]*unstructured.Unstructured{}}
	for kind, keys := range by {
		err := templates(ctx, hub, kind, keys, func(template *unstructured.Unstructured) {
			row, asked := keys[client.ObjectKeyFromObject(template)]
			if asked && volumepolicy.Stay(template, []string{kind.Kind}) != "" {
				out.templates[row] = template
			}
		})
		if err != nil {
			out.notes = append(out.notes, fmt.Sprintf("which volumes stay behind is not known for the kind %s: %s", kind.Kind, excerpt.Line(err.Error())))
		}
	}
	if len(out.templates) > 0 {
		out.there = volumepolicy.Found{}
		err := listing.Each(ctx, hub, &clusterv1alpha1.ClusterList{}, out.there.Add)()
		if err != nil && !apierrors.IsForbidden(err) { // what is said is right without it
			out.notes = append(out.notes, "which volumes other clusters still have is not known: "+excerpt.Line(err.Error()))
		}
	}
	slices.Sort(out.notes)
	return out
}

// templates calls take with each template of a kind that has one of the keys, and maybe others.
func templates(ctx context.Context, hub client.Reader, kind schema.GroupVersionKind, keys map[client.ObjectKey]string, take func(*unstructured.Unstructured)) error {
	if len(keys) > singly {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
		return listing.Each(ctx, hub, list, take)()
	}
	for key := range keys {
		template := &unstructured.Unstructured{}
		template.SetGroupVersionKind(kind)
		switch err := hub.Get(ctx, key, template); {
		case err == nil:
			take(template)
		case !apierrors.IsNotFound(err):
			return err
		}
	}
	return nil
}
