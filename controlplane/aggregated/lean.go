package aggregated

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/aggregated/intern"
)

// lean is a codec for the store. The server keeps every object that it decodes in memory,
// so lean makes the strings that nearly all objects of a kind have in common share memory.
type lean struct {
	runtime.Codec
	plain   plainly
	strings *intern.Pool
}

// Decode reads an object.
func (c lean) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := c.plain.Decode(data, defaults, into)
	if err != nil {
		return obj, gvk, err
	}
	switch o := obj.(type) {
	case *workv1alpha1.Work:
		c.metadata(&o.ObjectMeta)
		c.conditions(o.Status.Conditions)
		for i := range o.Status.ManifestStatuses {
			c.manifest(&o.Status.ManifestStatuses[i])
		}
	case *workv1alpha2.ResourceBinding:
		c.metadata(&o.ObjectMeta)
		c.binding(o)
	case *workv1alpha2.ClusterResourceBinding:
		c.metadata(&o.ObjectMeta)
		c.binding(o)
	}
	return obj, gvk, nil
}

// fewValues are the keys of annotations that have only few different values.
var fewValues = []string{
	workv1alpha2.ResourceConflictResolutionAnnotation, workv1alpha2.ResourceBindingNamespaceAnnotationKey, workv1alpha2.DriftAnnotation,
}

func (c lean) metadata(m *metav1.ObjectMeta) {
	m.Namespace = intern.String(c.strings, m.Namespace)
	intern.Keys(c.strings, m.Labels)
	intern.Keys(c.strings, m.Annotations)
	for _, key := range fewValues {
		if value, ok := m.Annotations[key]; ok {
			m.Annotations[key] = intern.String(c.strings, value)
		}
	}
	for i, finalizer := range m.Finalizers {
		m.Finalizers[i] = intern.String(c.strings, finalizer)
	}
}

func (c lean) conditions(all []metav1.Condition) {
	for i := range all {
		condition := &all[i]
		condition.Type = intern.String(c.strings, condition.Type)
		condition.Status = intern.String(c.strings, condition.Status)
		condition.Reason = intern.String(c.strings, condition.Reason)
		condition.Message = intern.String(c.strings, condition.Message)
	}
}

func (c lean) manifest(m *workv1alpha1.ManifestStatus) {
	id := &m.Identifier
	id.Group, id.Version = intern.String(c.strings, id.Group), intern.String(c.strings, id.Version)
	id.Kind, id.Resource = intern.String(c.strings, id.Kind), intern.String(c.strings, id.Resource)
	id.Namespace = intern.String(c.strings, id.Namespace)
	m.Health = intern.String(c.strings, m.Health)
}

func (c lean) binding(b workv1alpha2.Binding) {
	spec, status := b.BindingSpec(), b.BindingStatus()
	ref := &spec.Resource
	ref.APIVersion, ref.Kind, ref.Namespace = intern.String(c.strings, ref.APIVersion), intern.String(c.strings, ref.Kind), intern.String(c.strings, ref.Namespace)
	for i := range spec.Clusters {
		spec.Clusters[i].Name = intern.String(c.strings, spec.Clusters[i].Name)
	}
	c.conditions(status.Conditions)
	for i := range status.AggregatedStatus {
		item := &status.AggregatedStatus[i]
		item.ClusterName, item.Health = intern.String(c.strings, item.ClusterName), intern.String(c.strings, item.Health)
		item.AppliedMessage = intern.String(c.strings, item.AppliedMessage)
	}
}
