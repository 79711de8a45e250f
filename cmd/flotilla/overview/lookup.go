package overview

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/selection"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/lineage"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/listing"
	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/remains"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// lookup reads the object with a kind and a name on the control plane, or in a member. elsewhere is
// advice for errors on where else to look.
func lookup(ctx context.Context, f *fleet.Flags, cluster, kind, name, elsewhere string) (*unstructured.Unstructured, error) {
	factory := f.Server(cluster, fleet.Timeout)
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return nil, err
	}
	var obj *unstructured.Unstructured
	err = fleet.Until(ctx, func() error {
		infos, err := factory.NewBuilder().Unstructured().NamespaceParam(namespace).DefaultNamespace().
			ResourceNames(kind, name).Latest().Flatten().Do().Infos()
		if err != nil {
			return err
		}
		var ok bool
		if len(infos) != 1 {
			return fmt.Errorf("%s/%s means %d objects", kind, name, len(infos))
		}
		if obj, ok = infos[0].Object.(*unstructured.Unstructured); !ok {
			return fmt.Errorf("%s/%s is a %T", kind, name, infos[0].Object)
		}
		return nil
	})
	if apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "clusters.cluster.karmada.io") {
		where := "the control plane"
		if cluster != "" {
			where = cluster
		}
		return nil, &absentError{namespace, fmt.Sprintf("there is no %s %s in namespace %s of %s: %s", kind, name, namespace, where, elsewhere)}
	}
	return obj, err
}

// absentError is the error that an object is not in a namespace.
type absentError struct{ namespace, text string }

func (e *absentError) Error() string { return e.text }

// objectOf returns the name of an object.
func objectOf(obj client.Object, cluster string) lineage.Object {
	version, kind := obj.GetObjectKind().GroupVersionKind().ToAPIVersionAndKind()
	return lineage.Object{APIVersion: version, Kind: kind, Namespace: obj.GetNamespace(), Name: obj.GetName(), Cluster: cluster}
}

// reader reads related objects on the control plane.
type reader struct{ hub client.Reader }

// get reads an object to which another one refers.
func (r reader) get(ctx context.Context, apiVersion, kind, namespace, name string) (*unstructured.Unstructured, error) {
	obj := &unstructured.Unstructured{}
	obj.SetAPIVersion(apiVersion)
	obj.SetKind(kind)
	return obj, r.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, obj)
}

// silences returns the silent clusters; nil if the user may not read clusters.
func (r reader) silences(ctx context.Context) (rollup.Silences, error) {
	clusters, _, err := listing.Clusters(ctx, r.hub, listing.WithoutKinds)
	if apierrors.IsForbidden(err) {
		return nil, nil
	}
	out := rollup.Silences{}
	for _, c := range clusters {
		if s, silent := rollup.SilenceOf(c.Cluster); silent {
			out[c.Name] = s
		}
	}
	return out, err
}

// binding returns the binding of a template; nil if there is none.
func (r reader) binding(ctx context.Context, template client.Object) (workv1alpha2.Binding, error) {
	name := workv1alpha2.BindingName(template.GetObjectKind().GroupVersionKind().Kind, template.GetName())
	b, err := r.bindingNamed(ctx, template.GetNamespace(), name)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	gvk := template.GetObjectKind().GroupVersionKind()
	if ref := b.BindingSpec().Resource; schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind() != gvk.GroupKind() || ref.Name != template.GetName() {
		return nil, nil // names of bindings leave the group out: this is another's
	}
	return b, nil
}

func (r reader) bindingNamed(ctx context.Context, namespace, name string) (workv1alpha2.Binding, error) {
	var b workv1alpha2.Binding = &workv1alpha2.ResourceBinding{}
	kind := workv1alpha2.ResourceKindResourceBinding
	if namespace == "" {
		b, kind = &workv1alpha2.ClusterResourceBinding{}, workv1alpha2.ResourceKindClusterResourceBinding
	}
	err := r.hub.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, b)
	b.GetObjectKind().SetGroupVersionKind(workv1alpha2.GroupVersion.WithKind(kind)) // a typed client leaves it out
	return b, err
}

// idChunk is how many ids are in one request.
const idChunk = 100

// worksOf returns the Works of bindings, by the binding's permanent id.
func (r reader) worksOf(ctx context.Context, bindings []workv1alpha2.Binding) (map[string][]*workv1alpha1.Work, error) {
	byLabel := map[string][]string{}
	for _, b := range bindings {
		label := idLabel(b)
		if id := b.GetLabels()[label]; id != "" {
			byLabel[label] = append(byLabel[label], id)
		}
	}
	out := map[string][]*workv1alpha1.Work{}
	for label, ids := range byLabel {
		for chunk := range slices.Chunk(ids, idChunk) {
			requirement, err := labels.NewRequirement(label, selection.In, chunk)
			if err != nil {
				return nil, fmt.Errorf("ids of bindings: %w", err)
			}
			err = listing.Each(ctx, r.hub, &workv1alpha1.WorkList{}, func(w *workv1alpha1.Work) {
				out[w.Labels[label]] = append(out[w.Labels[label]], w)
			}, client.MatchingLabelsSelector{Selector: labels.NewSelector().Add(*requirement)})()
			if err != nil {
				return nil, err
			}
		}
	}
	for _, works := range out {
		remains.Sort(works)
	}
	return out, nil
}

func idLabel(b workv1alpha2.Binding) string {
	if b.GetNamespace() == "" {
		return workv1alpha2.ClusterResourceBindingPermanentIDLabel
	}
	return workv1alpha2.ResourceBindingPermanentIDLabel
}

// manifestOf returns the object in a Work; each Work has one.
func manifestOf(w *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	if len(w.Spec.Workload.Manifests) == 0 {
		return nil, fmt.Errorf("Work %s/%s carries nothing", w.Namespace, w.Name)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(w.Spec.Workload.Manifests[0].Raw); err != nil {
		return nil, fmt.Errorf("Work %s/%s carries what is no object", w.Namespace, w.Name) // not the content: it may be a Secret
	}
	return obj, nil
}

// templateOf returns the template that a Work was made from.
func (r reader) templateOf(ctx context.Context, w *workv1alpha1.Work) (*unstructured.Unstructured, error) {
	manifest, err := manifestOf(w)
	if err != nil {
		return nil, err
	}
	return r.get(ctx, manifest.GetAPIVersion(), manifest.GetKind(), manifest.GetNamespace(), manifest.GetName())
}

// into converts an unstructured object into a type.
func into(obj *unstructured.Unstructured, typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, typed); err != nil {
		return fmt.Errorf("read %s %s: %w", obj.GetKind(), obj.GetName(), err)
	}
	return nil
}
