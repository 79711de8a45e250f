package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupName is the API group of this package.
const GroupName = "cluster.karmada.io"

var (
	// GroupVersion is the group and version of this package.
	GroupVersion = schema.GroupVersion{Group: GroupName, Version: "v1alpha1"}

	// SchemeBuilder collects what AddToScheme registers.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes, addConversions)

	// AddToScheme registers the kinds of this package. Its error is that of the
	// scheme and means a conflict between two registrations.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Resource qualifies a plural name with this group.
func Resource(resource string) schema.GroupResource {
	return GroupVersion.WithResource(resource).GroupResource()
}

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&Cluster{}, &ClusterList{},
		&ClusterProxyOptions{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
