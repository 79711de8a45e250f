package outlook

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/cascade"
	"github.com/flotilla-io/flotilla/policies/volumes"
)

// inspection collects what will become of the Works of one cluster.
type inspection struct {
	inside Inside
	space  string
	works  map[string]*workv1alpha1.Work
	within map[string][]string // by namespace: what will stay there, as far as the hub knows
	unseen error
}

// data adds what a Work has in the cluster that stays in any case: volume claims,
// and what its policy preserves.
func (l *inspection) data(ctx context.Context, out *Outlook, work *workv1alpha1.Work) {
	preserved, claim := ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false), bringsVolumeClaim(work)
	for i := range work.Spec.Workload.Manifests {
		m := manifestOf(work, i)
		title := titleOf(m)
		switch {
		case claim:
			out.Kept = append(out.Kept, title+", with its data")
		case preserved:
			out.Preserved++
		case volumes.MakesClaims(m.GroupVersionKind().GroupKind()) && !others(work, i, title):
			out.Kept = append(out.Kept, l.claimsOf(ctx, m)...)
			continue
		default:
			continue
		}
		l.within[m.GetNamespace()] = append(l.within[m.GetNamespace()], m.GetKind()+" "+m.GetName())
	}
}

// claimsOf returns the claims that a StatefulSet has made in the cluster. They
// outlive it, unless its retention policy deletes them.
func (l *inspection) claimsOf(ctx context.Context, set *unstructured.Unstructured) []string {
	templates, _, _ := unstructured.NestedSlice(set.Object, "spec", "volumeClaimTemplates")
	if len(templates) == 0 || slices.Contains(volumes.Drops(set), "whenDeleted") {
		return nil
	}
	namespace := set.GetNamespace()
	if l.inside != nil {
		claims, err := l.inside.Claims(ctx, namespace)
		if err == nil {
			var out []string
			for _, claim := range volumes.MadeBy(set, claims) {
				out = append(out, fmt.Sprintf("PersistentVolumeClaim %s/%s of StatefulSet %s, with its data", namespace, claim.Name, set.GetName()))
			}
			return out
		}
		l.inside, l.unseen = nil, err
	}
	l.within[namespace] = append(l.within[namespace], "the PersistentVolumeClaims of StatefulSet "+set.GetName())
	return []string{fmt.Sprintf("the PersistentVolumeClaims of StatefulSet %s/%s, with their data", namespace, set.GetName())}
}

// rest adds what else a Work has in the cluster: it goes, unless deleting it
// would delete something that stays.
func (l *inspection) rest(ctx context.Context, out *Outlook, work *workv1alpha1.Work) {
	if ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) || bringsVolumeClaim(work) {
		return
	}
	for i := range work.Spec.Workload.Manifests {
		m := manifestOf(work, i)
		title := titleOf(m)
		if others(work, i, title) {
			continue
		}
		if why := l.holds(ctx, work, m); why != "" && out.Away == "" {
			out.Kept = append(out.Kept, title+" ("+why+")")
			continue
		}
		out.Going = append(out.Going, title)
	}
}

// namespaceKind is the kind of namespaces.
var namespaceKind = schema.GroupKind{Kind: "Namespace"}

// holds returns what keeps the object of a manifest, as it would be deleted with
// it; empty if nothing does.
func (l *inspection) holds(ctx context.Context, work *workv1alpha1.Work, m *unstructured.Unstructured) string {
	if volumes.Named(m) || work.Annotations[workv1alpha2.AllowCascadeAnnotation] == "true" {
		return ""
	}
	isSpace := m.GroupVersionKind().GroupKind() == namespaceKind
	var found []string
	if isSpace {
		found = l.within[m.GetName()]
	}
	if l.inside != nil {
		missed, err := l.inside.Missed(ctx, m, l.leaves)
		if err == nil {
			found = missed
		} else {
			l.inside, l.unseen = nil, err // another lookup would fail, too
		}
	}
	switch {
	case len(found) == 0:
		return ""
	case isSpace:
		return "in it: " + cascade.Describe(found)
	default:
		return "of its kind: " + cascade.Describe(found)
	}
}

// leaves reports whether an object in the cluster is removed when the cluster
// leaves.
func (l *inspection) leaves(kind schema.GroupKind, obj metav1.Object) bool {
	notes := obj.GetAnnotations()
	if obj.GetLabels()[workv1alpha2.ManagedByKarmadaLabel] != workv1alpha2.ManagedByKarmadaLabelValue || notes[workv1alpha2.WorkNamespaceAnnotation] != l.space {
		return false
	}
	work := l.works[notes[workv1alpha2.WorkNameAnnotation]]
	return work != nil && !ptr.Deref(work.Spec.PreserveResourcesOnDeletion, false) && !volumes.Stays(kind, work)
}
