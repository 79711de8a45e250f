package controlplane

import (
	"context"
	"sync"

	"github.com/google/uuid"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/utils/clock"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/openapi"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/admission/guard"
	"github.com/flotilla-io/flotilla/controlplane/admission/reporters"
	"github.com/flotilla-io/flotilla/controlplane/admission/spaces"
	"github.com/flotilla-io/flotilla/controlplane/admission/twins"
	"github.com/flotilla-io/flotilla/controlplane/aggregated"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
	"github.com/flotilla-io/flotilla/controlplane/proxy"
	"github.com/flotilla-io/flotilla/controlplane/registrar"
	"github.com/flotilla-io/flotilla/controlplane/resourcequota"
)

// extend gives the server what it has beyond Kubernetes and custom resources, and
// its own admission, and returns the kinds. Clusters are reached through the
// proxy. quotas is nil if bindings are not held
// against them.
func extend(server *apiserver.Options, opts Options, quotas *admission.Quotas, reach *proxy.Proxy) *aggregated.Kinds {
	var limits *admission.Quota
	served := aggregated.Options{Definitions: opts.Definitions, Now: opts.Clock.Now, NewID: uuid.NewString, Proxy: reach.Storage()}
	if quotas != nil {
		served.Witness = func(ctx context.Context) (context.Context, func(runtime.Object, error)) { return limits.Begin(ctx) }
	}
	kinds := aggregated.NewKinds(served)
	server.Extension = extension(kinds)
	server.Extension.Arrive = proxy.Arrive
	if opts.Rules.AllowKarmadactlRegister {
		server.Extension.Around = registrar.New(kinds.Cluster)
	}
	server.Admission = append(server.Admission, plugins(opts)...)
	if quotas != nil {
		limits = admission.NewQuota(kinds.Bindings, quotas, opts.Clock)
		server.Admission = append(server.Admission, apiserver.Plugin{Name: "FlotillaQuota", Interface: limits})
	}
	return kinds
}

// extension are the kinds that the server serves with their Go types.
func extension(kinds *aggregated.Kinds) *apiserver.Extension {
	return &apiserver.Extension{
		Name:         "flotilla",
		Scheme:       kinds.Scheme,
		Codecs:       kinds.Codecs,
		StorageCodec: kinds.StorageCodec,
		Definitions:  openapi.GetOpenAPIDefinitions,
		Groups:       kinds.Groups,
		Priorities: map[schema.GroupVersion]apiserver.Priority{
			clusterv1alpha1.GroupVersion: {Group: 2000, Version: 10},
			workv1alpha2.GroupVersion:    {Group: 1000, Version: 100},
			workv1alpha1.GroupVersion:    {Group: 1000, Version: 100},
		},
	}
}

// newProxy makes what carries requests to clusters. It reads Clusters from the
// kinds, and Secrets as a client of the server.
func (c *ControlPlane) newProxy() *proxy.Proxy {
	hub := sync.OnceValues(func() (kubernetes.Interface, error) { return kubernetes.NewForConfig(c.Config()) })
	return proxy.New(proxy.Options{
		Cluster: func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
			return c.kinds.Cluster(ctx, name)
		},
		Secret: func(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
			client, err := hub()
			if err != nil {
				return nil, err
			}
			const cached = "0"
			secret, err := client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{ResourceVersion: cached})
			if apierrors.IsNotFound(err) {
				return client.CoreV1().Secrets(namespace).Get(ctx, name, metav1.GetOptions{})
			}
			return secret, err
		},
		Clusters: func(ctx context.Context) ([]string, error) { return c.kinds.ClusterNames(ctx) },
		Hub:      func() *rest.Config { return c.Config() },
		May: func(ctx context.Context, who user.Info, verb, cluster string) (bool, error) {
			client, err := hub()
			if err != nil {
				return false, err
			}
			return mayConnect(ctx, client, who, verb, cluster)
		},
		Work: func(ctx context.Context, namespace, name string) (*workv1alpha1.Work, error) {
			return c.kinds.Work(ctx, namespace, name)
		},
		AllowLoopback: !c.opts.Rules.RefuseLoopbackClusters,
		Metrics:       legacyregistry.Registerer(),
		Clock:         c.opts.Clock,
	})
}

// mayConnect asks the server whether a user may connect to a cluster.
func mayConnect(ctx context.Context, hub kubernetes.Interface, who user.Info, verb, cluster string) (bool, error) {
	extra := map[string]authorizationv1.ExtraValue{}
	for key, values := range who.GetExtra() {
		extra[key] = values
	}
	review, err := hub.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: clusterv1alpha1.GroupName, Version: clusterv1alpha1.GroupVersion.Version,
			Resource: clusterv1alpha1.ResourcePluralCluster, Subresource: "proxy", Name: cluster, Verb: verb,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return review.Status.Allowed, nil
}

// plugins are the server's own admission.
func plugins(opts Options) []apiserver.Plugin {
	own := make([]string, len(opts.Definitions))
	for i, definition := range opts.Definitions {
		own[i] = definition.Name
	}
	out := []apiserver.Plugin{
		{Name: "FlotillaKinds", Interface: admission.NewPlugin(admission.Options{NewID: uuid.NewString, AllowNoExecuteTaints: opts.Rules.AllowNoExecuteTaintPolicy})},
		{Name: "FlotillaProtection", Interface: admission.NewProtection()},
		{Name: "FlotillaGuard", Interface: guard.New(own)},
		{Name: "FlotillaConnect", Interface: admission.NewConnect()},
		{Name: "FlotillaBorders", Interface: admission.NewBorders()},
		{Name: "FlotillaNames", Interface: admission.NewNames()},
		{Name: "FlotillaSelectors", Interface: admission.NewSelectors()},
		{Name: "FlotillaAgents", Interface: admission.NewAgents(clock.RealClock{}, opts.Rules.AllowKarmadactlRegister)},
		{Name: "FlotillaTwins", Interface: twins.New(clock.RealClock{})},
		{Name: "FlotillaReporters", Interface: reporters.New()},
		{Name: "FlotillaSpaces", Interface: spaces.New()},
	}
	if opts.Claim != nil {
		out = append(out, apiserver.Plugin{Name: "FlotillaClaims", Interface: admission.NewClaiming(opts.Claim)})
	}
	return append(out,
		apiserver.Plugin{Name: "FlotillaResourceQuota", Interface: resourcequota.New(), Last: true},
		// What those before it add is no user's doing.
		apiserver.Plugin{Name: "FlotillaAuthors", Interface: admission.NewAuthors()},
		apiserver.Plugin{Name: "FlotillaParts", Interface: admission.NewParts(), Last: true})
}
