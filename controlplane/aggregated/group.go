package aggregated

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	"k8s.io/apiserver/pkg/registry/rest"
	genericapiserver "k8s.io/apiserver/pkg/server"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/aggregated/intern"
)

// Kinds are the kinds that the package knows, ready to be installed in a server.
type Kinds struct {
	// Scheme knows the kinds.
	Scheme *runtime.Scheme
	// Codecs encode the kinds for the wire: JSON and YAML, as their types have
	// no protobuf form.
	Codecs runtime.NegotiatedSerializer
	// StorageCodec encodes the kinds for the store.
	StorageCodec runtime.Codec

	parameters runtime.ParameterCodec
	opts       Options
	stores     map[schema.GroupResource]*genericregistry.Store // once the groups are made
}

// Options configure how the kinds are served.
type Options struct {
	// Definitions have the names and schemas of the kinds. A kind whose definition is
	// missing is not served; only Cluster needs none.
	Definitions []*apiextensionsv1.CustomResourceDefinition
	// Now returns the time to record for new taints that evict.
	Now func() time.Time
	// NewID returns a new permanent id.
	NewID func() string
	// Witness is called when a write of a ResourceBinding begins. The function that it
	// returns is called with the outcome, and admission gets the context that it returns.
	// It may be nil.
	Witness Witness
	// Proxy serves the sub-resource proxy of Cluster; nil serves none.
	Proxy rest.Storage
}

// A Witness observes when writes begin and end.
type Witness func(ctx context.Context) (context.Context, func(written runtime.Object, err error))

// NewKinds makes the kinds.
func NewKinds(opts Options) *Kinds {
	scheme := newScheme()
	codecs := serializer.NewCodecFactory(scheme)
	stored := codecs.LegacyCodec(clusterv1alpha1.GroupVersion, workv1alpha2.GroupVersion, workv1alpha1.GroupVersion)
	return &Kinds{
		Scheme:       scheme,
		Codecs:       withoutProtobuf{codecs},
		StorageCodec: lean{stored, newPlainly(stored), intern.New()},
		parameters:   runtime.NewParameterCodec(scheme),
		opts:         opts,
	}
}

// newScheme returns a scheme with each kind in its versions. The server's internal version is
// the stored one.
func newScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(errors.Join( // fails only if the types contradict themselves
		clusterv1alpha1.AddToScheme(scheme),
		workv1alpha1.AddToScheme(scheme), workv1alpha2.AddToScheme(scheme), workv1alpha1.AddConversions(scheme),
		scheme.SetVersionPriority(workv1alpha2.GroupVersion, workv1alpha1.GroupVersion),
	))
	scheme.AddKnownTypes(internal(clusterv1alpha1.GroupName), &clusterv1alpha1.Cluster{}, &clusterv1alpha1.ClusterList{}, &clusterv1alpha1.ClusterProxyOptions{})
	scheme.AddKnownTypes(internal(workv1alpha2.GroupName),
		&workv1alpha1.Work{}, &workv1alpha1.WorkList{},
		&workv1alpha2.ResourceBinding{}, &workv1alpha2.ResourceBindingList{},
		&workv1alpha2.ClusterResourceBinding{}, &workv1alpha2.ClusterResourceBindingList{})
	core := schema.GroupVersion{Version: "v1"}
	metav1.AddToGroupVersion(scheme, core)
	scheme.AddUnversionedTypes(core, &metav1.Status{}, &metav1.APIVersions{}, &metav1.APIGroupList{}, &metav1.APIGroup{}, &metav1.APIResourceList{})
	return scheme
}

func internal(group string) schema.GroupVersion {
	return schema.GroupVersion{Group: group, Version: runtime.APIVersionInternal}
}

// Groups returns the API groups to serve, with storage from the getter.
func (k *Kinds) Groups(getter generic.RESTOptionsGetter) ([]*genericapiserver.APIGroupInfo, error) {
	s := &server{scheme: k.Scheme, getter: getter, newID: k.opts.NewID, witness: k.opts.Witness, stores: map[schema.GroupResource]*genericregistry.Store{}, storages: map[schema.GroupVersion]map[string]rest.Storage{}}
	if err := serve(s, clusters(k.opts.Now)); err != nil {
		return nil, fmt.Errorf("store of clusters: %w", err)
	}
	if k.opts.Proxy != nil {
		s.storages[clusterv1alpha1.GroupVersion][clusterResource.Resource+"/proxy"] = k.opts.Proxy
	}
	for _, crd := range k.opts.Definitions {
		if err := s.define(crd); err != nil {
			return nil, err
		}
	}
	k.stores = s.stores
	var out []*genericapiserver.APIGroupInfo
	for _, versions := range [][]schema.GroupVersion{{clusterv1alpha1.GroupVersion}, {workv1alpha2.GroupVersion, workv1alpha1.GroupVersion}} {
		if info := k.group(s, versions); len(info.PrioritizedVersions) > 0 {
			out = append(out, info)
		}
	}
	return out, nil
}

// define serves the kind of a definition if the package knows that kind.
func (s *server) define(crd *apiextensionsv1.CustomResourceDefinition) error {
	if crd.Spec.Group != workv1alpha2.GroupName {
		return nil
	}
	d, err := newDefinition(crd)
	if err != nil {
		return err
	}
	switch crd.Spec.Names.Kind {
	case workv1alpha1.ResourceKindWork:
		err = serve(s, works(d))
	case workv1alpha2.ResourceKindResourceBinding:
		k := resourceBindings(d)
		k.witness = s.witness
		err = serve(s, k)
	case workv1alpha2.ResourceKindClusterResourceBinding:
		err = serve(s, clusterResourceBindings(d))
	}
	if err != nil {
		return fmt.Errorf("store of %s: %w", crd.Spec.Names.Plural, err)
	}
	return nil
}

// group returns a group with those of the versions that serve a resource.
func (k *Kinds) group(s *server, versions []schema.GroupVersion) *genericapiserver.APIGroupInfo {
	info := &genericapiserver.APIGroupInfo{
		VersionedResourcesStorageMap: map[string]map[string]rest.Storage{},
		OptionsExternalVersion:       &schema.GroupVersion{Version: "v1"},
		Scheme:                       k.Scheme,
		ParameterCodec:               k.parameters,
		NegotiatedSerializer:         k.Codecs,
	}
	for _, version := range versions {
		if storages := s.storages[version]; len(storages) > 0 {
			info.PrioritizedVersions = append(info.PrioritizedVersions, version)
			info.VersionedResourcesStorageMap[version.Version] = storages
		}
	}
	return info
}
