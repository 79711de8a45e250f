package v1alpha1

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
	"k8s.io/apimachinery/pkg/runtime"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// AddConversions lets a scheme turn bindings, and lists of them, of this version
// into v1alpha2 and back. What v1alpha1 cannot say is lost on the way there and
// empty on the way back. Its error is that of the scheme.
func AddConversions(scheme *runtime.Scheme) error {
	return errors.Join(
		between(scheme, ResourceBindingToV1alpha2, ResourceBindingFromV1alpha2),
		between(scheme, ClusterResourceBindingToV1alpha2, ClusterResourceBindingFromV1alpha2),
		between(scheme,
			func(in *ResourceBindingList) *workv1alpha2.ResourceBindingList {
				return &workv1alpha2.ResourceBindingList{ListMeta: in.ListMeta, Items: each(in.Items, ResourceBindingToV1alpha2)}
			},
			func(in *workv1alpha2.ResourceBindingList) *ResourceBindingList {
				return &ResourceBindingList{ListMeta: in.ListMeta, Items: each(in.Items, ResourceBindingFromV1alpha2)}
			}),
		between(scheme,
			func(in *ClusterResourceBindingList) *workv1alpha2.ClusterResourceBindingList {
				return &workv1alpha2.ClusterResourceBindingList{ListMeta: in.ListMeta, Items: each(in.Items, ClusterResourceBindingToV1alpha2)}
			},
			func(in *workv1alpha2.ClusterResourceBindingList) *ClusterResourceBindingList {
				return &ClusterResourceBindingList{ListMeta: in.ListMeta, Items: each(in.Items, ClusterResourceBindingFromV1alpha2)}
			}),
	)
}

// between registers both directions.
func between[Old, New any](scheme *runtime.Scheme, forth func(*Old) *New, back func(*New) *Old) error {
	return errors.Join(register(scheme, forth), register(scheme, back))
}

func register[In, Out any](scheme *runtime.Scheme, convert func(*In) *Out) error {
	return scheme.AddConversionFunc((*In)(nil), (*Out)(nil), func(in, out any, _ conversion.Scope) error {
		*out.(*Out) = *convert(in.(*In))
		return nil
	})
}

func each[In, Out any](in []In, convert func(*In) *Out) []Out {
	if in == nil {
		return nil
	}
	out := make([]Out, len(in))
	for i := range in {
		out[i] = *convert(&in[i])
	}
	return out
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
