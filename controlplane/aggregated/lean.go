package aggregated

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/lexicon"
)

// lean is a codec of the store. The server keeps every object that it decodes in
// memory: what nearly all objects of a kind have in common they hold once.
type lean struct {
	runtime.Codec
	words *lexicon.Lexicon
}

// Decode reads an object.
func (c lean) Decode(data []byte, defaults *schema.GroupVersionKind, into runtime.Object) (runtime.Object, *schema.GroupVersionKind, error) {
	obj, gvk, err := c.Codec.Decode(data, defaults, into)
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

// fewValues are annotations that have one of few values.
var fewValues = []string{
	workv1alpha2.ResourceConflictResolutionAnnotation, workv1alpha2.ResourceBindingNamespaceAnnotationKey, workv1alpha2.DriftAnnotation,
}

func (c lean) metadata(m *metav1.ObjectMeta) {
	m.Namespace = lexicon.Text(c.words, m.Namespace)
	lexicon.Keys(c.words, m.Labels)
	lexicon.Keys(c.words, m.Annotations)
	for _, key := range fewValues {
		if value, ok := m.Annotations[key]; ok {
			m.Annotations[key] = lexicon.Text(c.words, value)
		}
	}
	for i, finalizer := range m.Finalizers {
		m.Finalizers[i] = lexicon.Text(c.words, finalizer)
	}
}

func (c lean) conditions(all []metav1.Condition) {
	for i := range all {
		condition := &all[i]
		condition.Type = lexicon.Text(c.words, condition.Type)
		condition.Status = lexicon.Text(c.words, condition.Status)
		condition.Reason = lexicon.Text(c.words, condition.Reason)
		condition.Message = lexicon.Text(c.words, condition.Message)
	}
}

func (c lean) manifest(m *workv1alpha1.ManifestStatus) {
	id := &m.Identifier
	id.Group, id.Version = lexicon.Text(c.words, id.Group), lexicon.Text(c.words, id.Version)
	id.Kind, id.Resource = lexicon.Text(c.words, id.Kind), lexicon.Text(c.words, id.Resource)
	id.Namespace = lexicon.Text(c.words, id.Namespace)
	m.Health = lexicon.Text(c.words, m.Health)
}

func (c lean) binding(b workv1alpha2.Binding) {
	spec, status := b.BindingSpec(), b.BindingStatus()
	ref := &spec.Resource
	ref.APIVersion, ref.Kind, ref.Namespace = lexicon.Text(c.words, ref.APIVersion), lexicon.Text(c.words, ref.Kind), lexicon.Text(c.words, ref.Namespace)
	for i := range spec.Clusters {
		spec.Clusters[i].Name = lexicon.Text(c.words, spec.Clusters[i].Name)
	}
	c.conditions(status.Conditions)
	for i := range status.AggregatedStatus {
		item := &status.AggregatedStatus[i]
		item.ClusterName, item.Health = lexicon.Text(c.words, item.ClusterName), lexicon.Text(c.words, item.Health)
		item.AppliedMessage = lexicon.Text(c.words, item.AppliedMessage)
	}
}
