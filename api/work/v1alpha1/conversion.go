package v1alpha1

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// ErrConversion is in the chain of every error of Convert: the object's kind or
// one of the two versions is not one that converts.
var ErrConversion = errors.New("no such conversion")

// Convert turns the JSON of a binding of either kind into apiVersion, which is
// work.karmada.io/v1alpha1 or work.karmada.io/v1alpha2. What v1alpha1 cannot
// say is lost on the way there and empty on the way back. An object that has the
// version already comes back as it is.
//
// Errors: ErrConversion when kind or version are of no known pair, and those of
// decoding.
func Convert(object []byte, apiVersion string) ([]byte, error) {
	var meta metav1.TypeMeta
	if err := json.Unmarshal(object, &meta); err != nil {
		return nil, fmt.Errorf("decode type of object: %w", err)
	}
	if meta.APIVersion == apiVersion {
		return object, nil
	}
	convert, ok := conversions[step{kind: meta.Kind, from: meta.APIVersion, to: apiVersion}]
	if !ok {
		return nil, fmt.Errorf("%s from %q to %q: %w", meta.Kind, meta.APIVersion, apiVersion, ErrConversion)
	}
	return convert(object)
}

// step is one conversion that Convert knows.
type step struct{ kind, from, to string }

var conversions = map[step]func([]byte) ([]byte, error){
	{"ResourceBinding", GroupVersion.String(), workv1alpha2.GroupVersion.String()}:        through(ResourceBindingToV1alpha2),
	{"ResourceBinding", workv1alpha2.GroupVersion.String(), GroupVersion.String()}:        through(ResourceBindingFromV1alpha2),
	{"ClusterResourceBinding", GroupVersion.String(), workv1alpha2.GroupVersion.String()}: through(ClusterResourceBindingToV1alpha2),
	{"ClusterResourceBinding", workv1alpha2.GroupVersion.String(), GroupVersion.String()}: through(ClusterResourceBindingFromV1alpha2),
}

// through decodes, converts and encodes.
func through[In, Out any](convert func(*In) *Out) func([]byte) ([]byte, error) {
	return func(object []byte) ([]byte, error) {
		in := new(In)
		if err := json.Unmarshal(object, in); err != nil {
			return nil, fmt.Errorf("decode binding: %w", err)
		}
		return json.Marshal(convert(in))
	}
}

// ResourceBindingToV1alpha2 returns b in version v1alpha2. It shares nothing
// with b.
func ResourceBindingToV1alpha2(b *ResourceBinding) *workv1alpha2.ResourceBinding {
	return &workv1alpha2.ResourceBinding{
		TypeMeta:   typeMeta(workv1alpha2.GroupVersion.String(), workv1alpha2.ResourceKindResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specToV1alpha2(b.Spec.DeepCopy()),
		Status:     statusToV1alpha2(b.Status.DeepCopy()),
	}
}

// ResourceBindingFromV1alpha2 returns b in version v1alpha1. It shares nothing
// with b.
func ResourceBindingFromV1alpha2(b *workv1alpha2.ResourceBinding) *ResourceBinding {
	return &ResourceBinding{
		TypeMeta:   typeMeta(GroupVersion.String(), workv1alpha2.ResourceKindResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specFromV1alpha2(b.Spec.DeepCopy()),
		Status:     statusFromV1alpha2(b.Status.DeepCopy()),
	}
}

// ClusterResourceBindingToV1alpha2 returns b in version v1alpha2. It shares
// nothing with b.
func ClusterResourceBindingToV1alpha2(b *ClusterResourceBinding) *workv1alpha2.ClusterResourceBinding {
	return &workv1alpha2.ClusterResourceBinding{
		TypeMeta:   typeMeta(workv1alpha2.GroupVersion.String(), workv1alpha2.ResourceKindClusterResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specToV1alpha2(b.Spec.DeepCopy()),
		Status:     statusToV1alpha2(b.Status.DeepCopy()),
	}
}

// ClusterResourceBindingFromV1alpha2 returns b in version v1alpha1. It shares
// nothing with b.
func ClusterResourceBindingFromV1alpha2(b *workv1alpha2.ClusterResourceBinding) *ClusterResourceBinding {
	return &ClusterResourceBinding{
		TypeMeta:   typeMeta(GroupVersion.String(), workv1alpha2.ResourceKindClusterResourceBinding),
		ObjectMeta: *b.ObjectMeta.DeepCopy(),
		Spec:       specFromV1alpha2(b.Spec.DeepCopy()),
		Status:     statusFromV1alpha2(b.Status.DeepCopy()),
	}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

func specToV1alpha2(in *ResourceBindingSpec) workv1alpha2.ResourceBindingSpec {
	out := workv1alpha2.ResourceBindingSpec{
		Resource: workv1alpha2.ObjectReference{
			APIVersion:      in.Resource.APIVersion,
			Kind:            in.Resource.Kind,
			Namespace:       in.Resource.Namespace,
			Name:            in.Resource.Name,
			ResourceVersion: in.Resource.ResourceVersion,
		},
		Replicas:            in.Resource.Replicas,
		ReplicaRequirements: requirements(in.Resource.ReplicaResourceRequirements),
	}
	for _, c := range in.Clusters {
		out.Clusters = append(out.Clusters, workv1alpha2.TargetCluster{Name: c.Name, Replicas: c.Replicas})
	}
	return out
}

func requirements(request corev1.ResourceList) *workv1alpha2.ReplicaRequirements {
	if len(request) == 0 {
		return nil
	}
	return &workv1alpha2.ReplicaRequirements{ResourceRequest: request}
}

func specFromV1alpha2(in *workv1alpha2.ResourceBindingSpec) ResourceBindingSpec {
	out := ResourceBindingSpec{Resource: ObjectReference{
		APIVersion:      in.Resource.APIVersion,
		Kind:            in.Resource.Kind,
		Namespace:       in.Resource.Namespace,
		Name:            in.Resource.Name,
		ResourceVersion: in.Resource.ResourceVersion,
		Replicas:        in.Replicas,
	}}
	if in.ReplicaRequirements != nil {
		out.Resource.ReplicaResourceRequirements = in.ReplicaRequirements.ResourceRequest
	}
	for _, c := range in.Clusters {
		out.Clusters = append(out.Clusters, TargetCluster{Name: c.Name, Replicas: c.Replicas})
	}
	return out
}

func statusToV1alpha2(in *ResourceBindingStatus) workv1alpha2.ResourceBindingStatus {
	out := workv1alpha2.ResourceBindingStatus{Conditions: in.Conditions}
	for _, item := range in.AggregatedStatus {
		out.AggregatedStatus = append(out.AggregatedStatus, workv1alpha2.AggregatedStatusItem{
			ClusterName:    item.ClusterName,
			Status:         item.Status,
			Applied:        item.Applied,
			AppliedMessage: item.AppliedMessage,
		})
	}
	return out
}

func statusFromV1alpha2(in *workv1alpha2.ResourceBindingStatus) ResourceBindingStatus {
	out := ResourceBindingStatus{Conditions: in.Conditions}
	for _, item := range in.AggregatedStatus {
		out.AggregatedStatus = append(out.AggregatedStatus, AggregatedStatusItem{
			ClusterName:    item.ClusterName,
			Status:         item.Status,
			Applied:        item.Applied,
			AppliedMessage: item.AppliedMessage,
		})
	}
	return out
}
