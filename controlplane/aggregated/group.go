package aggregated

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// Group is the API group cluster.karmada.io, ready to be installed in a server.
type Group struct {
	// Scheme knows the group's kinds. They have one version, which is also what
	// the server works with.
	Scheme *runtime.Scheme
	// Codecs encode the kinds for the wire: JSON and YAML, as their types have
	// no protobuf form.
	Codecs runtime.NegotiatedSerializer
	// StorageCodec encodes the kinds for the store.
	StorageCodec runtime.Codec

	parameters runtime.ParameterCodec
	now        func() time.Time
}

// NewGroup makes the group. now is when taints that evict were added.
func NewGroup(now func() time.Time) *Group {
	scheme := runtime.NewScheme()
	utilruntime.Must(clusterv1alpha1.AddToScheme(scheme)) // fails only if the types contradict themselves
	internal := schema.GroupVersion{Group: clusterv1alpha1.GroupName, Version: runtime.APIVersionInternal}
	scheme.AddKnownTypes(internal, &clusterv1alpha1.Cluster{}, &clusterv1alpha1.ClusterList{}, &clusterv1alpha1.ClusterProxyOptions{})
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	codecs := serializer.NewCodecFactory(scheme)
	return &Group{
		Scheme:       scheme,
		Codecs:       withoutProtobuf{codecs},
		StorageCodec: codecs.LegacyCodec(clusterv1alpha1.GroupVersion),
		parameters:   runtime.NewParameterCodec(scheme),
		now:          now,
	}
}

// Groups returns what the group serves, stored through the getter.
func (g *Group) Groups(getter generic.RESTOptionsGetter) ([]*genericapiserver.APIGroupInfo, error) {
	clusters, status, err := newStorage(g.Scheme, getter, g.now)
	if err != nil {
		return nil, fmt.Errorf("store of clusters: %w", err)
	}
	info := genericapiserver.APIGroupInfo{
		PrioritizedVersions:          []schema.GroupVersion{clusterv1alpha1.GroupVersion},
		VersionedResourcesStorageMap: map[string]map[string]rest.Storage{},
		OptionsExternalVersion:       &schema.GroupVersion{Version: "v1"},
		Scheme:                       g.Scheme,
		ParameterCodec:               g.parameters,
		NegotiatedSerializer:         g.Codecs,
	}
	info.VersionedResourcesStorageMap[clusterv1alpha1.GroupVersion.Version] = map[string]rest.Storage{
		"clusters": clusters, "clusters/status": status,
	}
	return []*genericapiserver.APIGroupInfo{&info}, nil
}

// withoutProtobuf offers what our types can be written as.
type withoutProtobuf struct{ runtime.NegotiatedSerializer }

// SupportedMediaTypes are those of the wrapped serializer without protobuf.
func (s withoutProtobuf) SupportedMediaTypes() []runtime.SerializerInfo {
	return slices.DeleteFunc(slices.Clone(s.NegotiatedSerializer.SupportedMediaTypes()), func(info runtime.SerializerInfo) bool {
		return info.MediaType == runtime.ContentTypeProtobuf
	})
}
