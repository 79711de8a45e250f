// Package remains finds what is left of an object that is not on the control plane any more.
//
// In go the control plane and the name of an object; out come the Works that still have it, and who removed it
// according to Kustomizations and their Events. It skips what the user may not read, and writes nothing.
package remains

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/standing"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/plan"
	"github.com/flotilla-io/flotilla/policies/staleremoval"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
)

// Found is what is left of an object. The zero value is nothing.
type Found struct {
	// Sentences describe who removed it, and what follows from that.
	Sentences []string
	// Works are the Works that still have it, sorted.
	Works []*workv1alpha1.Work
}

// Of finds what is left of an object.
func Of(ctx context.Context, hub client.Reader, obj *unstructured.Unstructured) (Found, error) {
	id := inventory.IDOf(obj)
	works, err := Works(ctx, hub, id.GroupKind.Kind, id.Namespace, id.Name)
	if err != nil && !apierrors.IsForbidden(err) {
		return Found{}, err
	}
	works = slices.DeleteFunc(works, func(w *workv1alpha1.Work) bool { return !carries(w, id) })
	sentences, err := sentences(ctx, hub, id, err != nil || len(works) > 0)
	if err != nil {
		return Found{}, err
	}
	if len(works) > 0 && len(sentences) == 0 {
		sentences = append(sentences, "It is not on the control plane any more, and nobody says who removed it.")
	}
	return Found{Sentences: sentences, Works: works}, nil
}

// Works returns the Works of an object by their name, which does not contain the object's group. The Works of a
// namespace can be found in no other way.
func Works(ctx context.Context, hub client.Reader, kind, namespace, name string) ([]*workv1alpha1.Work, error) {
	var works []*workv1alpha1.Work
	var errs []error
	for _, named := range []string{
		workv1alpha2.WorkName(kind, name, namespace), workv1alpha2.FormerWorkName(kind, name, namespace), // on a hub that is older
	} {
		errs = append(errs, listing.Each(ctx, hub, &workv1alpha1.WorkList{}, func(w *workv1alpha1.Work) { works = append(works, w) },
			client.MatchingFields{"metadata.name": named})())
	}
	Sort(works)
	return works, errors.Join(errs...)
}

// Recalled returns the Works of a binding, and those that a former binding of its template left in clusters where it has none, and whose
// removal is recalled.
func Recalled(ctx context.Context, hub client.Reader, b workv1alpha2.Binding, works []*workv1alpha1.Work) ([]*workv1alpha1.Work, error) {
	lacks := func(cluster string) bool {
		return !slices.ContainsFunc(works, func(w *workv1alpha1.Work) bool { return w.Namespace == workv1alpha2.ExecutionNamespace(cluster) })
	}
	var without []string
	for _, target := range plan.Targets(plan.SpecOf(b)) {
		if lacks(target.Name) {
			without = append(without, workv1alpha2.ExecutionNamespace(target.Name))
		}
	}
	if len(without) == 0 {
		return works, nil
	}
	ref := b.BindingSpec().Resource
	id := inventory.ID{GroupKind: schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), Namespace: ref.Namespace, Name: ref.Name}
	former, err := Works(ctx, hub, ref.Kind, ref.Namespace, ref.Name)
	if err != nil {
		return works, err
	}
	for _, w := range former {
		if slices.Contains(without, w.Namespace) && staleremoval.Recalled(w) && carries(w, id) {
			works = append(works, w)
		}
	}
	Sort(works)
	return works, nil
}

// Sort sorts Works by cluster and name.
func Sort(works []*workv1alpha1.Work) {
	slices.SortFunc(works, func(a, b *workv1alpha1.Work) int {
		return strings.Compare(a.Namespace+"/"+a.Name, b.Namespace+"/"+b.Name)
	})
}

func carries(w *workv1alpha1.Work, id inventory.ID) bool {
	return slices.ContainsFunc(w.Spec.Workload.Manifests, func(m workv1alpha1.Manifest) bool {
		of, _, ok := inventory.OfManifest(m.Raw)
		return ok && of == id
	})
}

// sentences returns what Kustomizations and their Events report about an object, which clusters may hold still.
func sentences(ctx context.Context, hub client.Reader, id inventory.ID, held bool) ([]string, error) {
	var out []string
	err := each(ctx, hub, id.Namespace, &kustomizev1.KustomizationList{}, func(ks *kustomizev1.Kustomization) {
		if text := statusSays(ks, id, held); text != "" {
			out = append(out, text)
		}
	})
	if err != nil {
		return nil, err
	}
	var events []*corev1.Event
	err = each(ctx, hub, id.Namespace, &corev1.EventList{}, func(e *corev1.Event) {
		if e.InvolvedObject.Kind == kustomizev1.KustomizationKind {
			events = append(events, e)
		}
	}, client.MatchingFields{"involvedObject.kind": kustomizev1.KustomizationKind})
	if err != nil {
		return out, err
	}
	slices.SortStableFunc(events, func(a, b *corev1.Event) int { return b.LastTimestamp.Compare(a.LastTimestamp.Time) })
	return append(removed(events, id), out...), nil
}

// each lists all objects, or those of a namespace if the user may not list all, or none.
func each[L client.ObjectList, T any](ctx context.Context, hub client.Reader, namespace string, list L, take func(*T), opts ...client.ListOption) error {
	err := listing.Each(ctx, hub, list, take, opts...)()
	if apierrors.IsForbidden(err) && namespace != "" {
		err = listing.Each(ctx, hub, list, take, append(opts, client.InNamespace(namespace))...)()
	}
	if apierrors.IsForbidden(err) {
		return nil
	}
	return err
}

// statusSays returns what the status of a Kustomization contains about a missing object; empty if nothing. Where no Work
// has it, no cluster does: the status learns of that later.
func statusSays(ks *kustomizev1.Kustomization, id inventory.ID, held bool) string {
	of := fmt.Sprintf("Kustomization %s/%s", ks.Namespace, ks.Name)
	entries, err := inventory.Read(ks.Status.Inventory)
	if err != nil {
		return ""
	}
	owned := slices.ContainsFunc(entries, func(e inventory.Entry) bool { return e.ID == id })
	switch {
	case slices.Contains(inventory.Removed(ks.Status), id) && held:
		return fmt.Sprintf("It left %s by revision %s, or one before, and clusters may still hold it: it goes there, too.", of, shown(ks.Status.LastAttemptedRevision))
	case slices.Contains(inventory.Leaving(ks.Status), id), slices.Contains(inventory.Removed(ks.Status), id):
		return fmt.Sprintf("It left %s by revision %s, or one before.", of, shown(ks.Status.LastAttemptedRevision))
	case owned && inventory.PlaceOf(ks.Status) != (inventory.Place{}):
		return fmt.Sprintf("%s applies it %s, at revision %s, and not here: that cluster is outside of the fleet.", of, inventory.PlaceOf(ks.Status), shown(ks.Status.LastAppliedRevision))
	case owned:
		return of + missing(ks)
	default:
		return ""
	}
}

// missing says what a Kustomization does about an object that it owns and that is not there.
func missing(ks *kustomizev1.Kustomization) string {
	at := ""
	if revision := standing.Revision(ks); revision != "" {
		at = ", at revision " + excerpt.Line(revision)
	}
	if ks.Spec.Suspend {
		return fmt.Sprintf(" applies it%s, and is suspended: it comes back once that goes on, by flotilla resume kustomization %s -n %s.", at, ks.Name, ks.Namespace)
	}
	return fmt.Sprintf(" applies it%s, and it is not there: somebody else deleted it, or it has yet to be applied. flotilla reconcile kustomization %s -n %s brings it.", at, ks.Name, ks.Namespace)
}

func shown(revision string) string {
	if revision == "" {
		return "unknown"
	}
	return excerpt.Line(revision)
}
