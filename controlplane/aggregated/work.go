package aggregated

import (
	"bytes"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/validate"
)

// works returns the kind Work.
func works(d *definition) kind[*workv1alpha1.Work] {
	names := d.names()
	names.finalizer = workv1alpha2.ExecutionControllerFinalizer
	return kind[*workv1alpha1.Work]{
		names: names, versions: d.versions(), namespaced: true, custom: true, tables: d.tables,
		newObject: func() *workv1alpha1.Work { return &workv1alpha1.Work{} },
		newList:   func() runtime.Object { return &workv1alpha1.WorkList{} },
		identity:  validate.Identity{Label: workv1alpha2.WorkPermanentIDLabel},
		complete:  validate.DefaultWork,
		check:     func(_, _ *workv1alpha1.Work) (field.ErrorList, []string) { return nil, nil },
		checkSpec: func(w *workv1alpha1.Work) field.ErrorList {
			return append(d.checkSpec(&w.Spec), validate.Work(w)...)
		},
		checkStatus: func(w *workv1alpha1.Work) field.ErrorList {
			judged := w.Status // members may report anything as Status, so it is not decoded
			judged.ManifestStatuses = slices.Clone(judged.ManifestStatuses)
			for i := range judged.ManifestStatuses {
				judged.ManifestStatuses[i].Status = nil
			}
			return d.checkStatus(&judged)
		},
		sameSpec:   func(a, b *workv1alpha1.Work) bool { return sameWork(a.Spec, b.Spec) },
		keepStatus: func(w, old *workv1alpha1.Work) { w.Status = old.Status },
		keepSpec: func(w, old *workv1alpha1.Work) {
			keepMeta(&w.ObjectMeta, &old.ObjectMeta)
			w.Spec = old.Spec
		},
	}
}

// sameWork reports whether the specs of two Works are equal. It compares manifests as bytes,
// because reflection would visit each byte.
func sameWork(a, b workv1alpha1.WorkSpec) bool {
	same := slices.EqualFunc(a.Workload.Manifests, b.Workload.Manifests, func(x, y workv1alpha1.Manifest) bool { return bytes.Equal(x.Raw, y.Raw) })
	a.Workload.Manifests, b.Workload.Manifests = nil, nil
	return same && apiequality.Semantic.DeepEqual(a, b)
}

// bindings returns one of the two kinds of bindings. B is a pointer to its type.
func bindings[B workv1alpha2.Binding](d *definition, idLabel string, newBinding func() B, newList func() runtime.Object, meta func(B) *metav1.ObjectMeta) kind[B] {
	return kind[B]{
		names: d.names(), versions: d.versions(), namespaced: d.namespaced(), custom: true, tables: d.tables,
		newObject: newBinding,
		newList:   newList,
		identity:  validate.Identity{Label: idLabel},
		complete:  func(b, _ B) { validate.DefaultBinding(b) },
		check:     func(b, _ B) (field.ErrorList, []string) { return validate.Binding(b), nil },
		checkSpec: func(b B) field.ErrorList { return d.checkSpec(b.BindingSpec()) },
		checkStatus: func(b B) field.ErrorList {
			judged := *b.BindingStatus() // as above
			judged.AggregatedStatus = slices.Clone(judged.AggregatedStatus)
			for i := range judged.AggregatedStatus {
				judged.AggregatedStatus[i].Status = nil
			}
			return d.checkStatus(&judged)
		},
		sameSpec:   func(a, b B) bool { return apiequality.Semantic.DeepEqual(a.BindingSpec(), b.BindingSpec()) },
		keepStatus: func(b, old B) { *b.BindingStatus() = *old.BindingStatus() },
		keepSpec: func(b, old B) {
			keepMeta(meta(b), meta(old))
			*b.BindingSpec() = *old.BindingSpec()
		},
	}
}

func resourceBindings(d *definition) kind[*workv1alpha2.ResourceBinding] {
	return bindings(d, workv1alpha2.ResourceBindingPermanentIDLabel,
		func() *workv1alpha2.ResourceBinding { return &workv1alpha2.ResourceBinding{} },
		func() runtime.Object { return &workv1alpha2.ResourceBindingList{} },
		func(b *workv1alpha2.ResourceBinding) *metav1.ObjectMeta { return &b.ObjectMeta })
}

func clusterResourceBindings(d *definition) kind[*workv1alpha2.ClusterResourceBinding] {
	return bindings(d, workv1alpha2.ClusterResourceBindingPermanentIDLabel,
		func() *workv1alpha2.ClusterResourceBinding { return &workv1alpha2.ClusterResourceBinding{} },
		func() runtime.Object { return &workv1alpha2.ClusterResourceBindingList{} },
		func(b *workv1alpha2.ClusterResourceBinding) *metav1.ObjectMeta { return &b.ObjectMeta })
}

// keepMeta restores the metadata of old except for the managed fields.
func keepMeta(obj, old *metav1.ObjectMeta) {
	managers := obj.ManagedFields
	*obj = *old
	obj.ManagedFields = managers
}
