package apiserver

import (
	"io"
	"net/http"

	"github.com/emicklei/go-restful/v3"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	openapinamer "k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	aggregatorscheme "k8s.io/kube-aggregator/pkg/apiserver/scheme"
	openapicommon "k8s.io/kube-openapi/pkg/common"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	generatedopenapi "k8s.io/kubernetes/pkg/generated/openapi"
)

// An Extension is what the chain serves beyond Kubernetes: kinds with a store
// of their own, in process. They are reached like any other; no hop and no
// certificate lies between.
type Extension struct {
	// Name is for logs and health.
	Name string
	// Codecs encode the extension's kinds, for the wire and for the store.
	Codecs runtime.NegotiatedSerializer
	// StorageCodec encodes for the store.
	StorageCodec runtime.Codec
	// Scheme knows the extension's kinds.
	Scheme *runtime.Scheme
	// Definitions describe the kinds for OpenAPI.
	Definitions openapicommon.GetOpenAPIDefinitions
	// Groups returns what to serve, stored through the getter.
	Groups func(generic.RESTOptionsGetter) ([]*genericapiserver.APIGroupInfo, error)
	// Priorities order the extension's groups and versions in discovery.
	Priorities map[schema.GroupVersion]Priority
	// Arrive returns a request as the extension's kinds are to see it, after it was
	// allowed; nil changes none.
	Arrive func(*http.Request) *http.Request
	// Around stands around the whole chain; nil: nothing does.
	Around Around
}

// Priority orders a group among groups and a version within its group; the
// higher comes first.
type Priority struct{ Group, Version int32 }

// newServer builds the extension as a server that hands on what it doesn't know.
func (e *Extension) newServer(config *app.Config, next genericapiserver.DelegationTarget) (*genericapiserver.GenericAPIServer, error) {
	generic := *config.KubeAPIs.ControlPlane.Generic // shares what all servers of the chain share
	generic.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{}
	generic.RESTOptionsGetter = nil
	generic.Serializer = e.Codecs
	definitions := e.definitions()
	namer := openapinamer.NewDefinitionNamer(e.Scheme, aggregatorscheme.Scheme)
	generic.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(definitions, namer)
	generic.OpenAPIConfig.SecurityDefinitions = config.KubeAPIs.ControlPlane.Generic.OpenAPIConfig.SecurityDefinitions
	generic.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(definitions, namer)
	generic.OpenAPIV3Config.SecuritySchemes = config.KubeAPIs.ControlPlane.Generic.OpenAPIV3Config.SecuritySchemes

	etcd := *config.Options.Etcd
	etcd.StorageConfig.Codec = e.StorageCodec
	etcd.StorageConfig.EncodeVersioner = nil
	etcd.SkipHealthEndpoints = true
	if err := etcd.ApplyTo(&generic); err != nil {
		return nil, err
	}
	generic.PostStartHooks = map[string]genericapiserver.PostStartHookConfigEntry{} // the chain's first server has them
	server, err := generic.Complete(config.KubeAPIs.ControlPlane.VersionedInformers).New(e.Name, next)
	if err != nil {
		return nil, err
	}
	if e.Arrive != nil {
		server.Handler.GoRestfulContainer.Filter(func(req *restful.Request, resp *restful.Response, chain *restful.FilterChain) {
			req.Request = e.Arrive(req.Request)
			chain.ProcessFilter(req, resp)
		})
	}
	return server, e.install(server, generic.RESTOptionsGetter)
}

func (e *Extension) install(server *genericapiserver.GenericAPIServer, getter generic.RESTOptionsGetter) error {
	groups, err := e.Groups(getter)
	if err != nil {
		return err
	}
	return server.InstallAPIGroups(groups...)
}

// definitions are the extension's and those of what its kinds are made of.
func (e *Extension) definitions() openapicommon.GetOpenAPIDefinitions {
	return func(ref openapicommon.ReferenceCallback) map[string]openapicommon.OpenAPIDefinition {
		all := generatedopenapi.GetOpenAPIDefinitions(ref)
		for name, definition := range e.Definitions(ref) {
			all[name] = definition
		}
		return all
	}
}

func admissionFactory(plugin admission.Interface) admission.Factory {
	return func(io.Reader) (admission.Interface, error) { return plugin, nil }
}
