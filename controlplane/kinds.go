package controlplane

import (
	"context"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/openapi"
	workv1alpha1 "github.com/flotilla-io/flotilla/api/work/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/controlplane/admission"
	"github.com/flotilla-io/flotilla/controlplane/aggregated"
	"github.com/flotilla-io/flotilla/controlplane/apiserver"
)

// extend gives the server what it has beyond Kubernetes and custom resources, and
// its own admission. quotas is nil if bindings are not held against them.
func extend(server *apiserver.Options, opts Options, quotas *admission.Quotas) {
	var limits *admission.Quota
	served := aggregated.Options{Definitions: opts.Definitions, Now: opts.Clock.Now, NewID: uuid.NewString}
	if quotas != nil {
		served.Witness = func(ctx context.Context) (context.Context, func(runtime.Object, error)) { return limits.Begin(ctx) }
	}
	kinds := aggregated.NewKinds(served)
	server.Extension = extension(kinds)
	server.Admission = plugins(opts)
	if quotas != nil {
		limits = admission.NewQuota(kinds.Bindings, quotas, opts.Clock)
		server.Admission = append(server.Admission, apiserver.Plugin{Name: "FlotillaQuota", Interface: limits})
	}
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

// plugins are the server's own admission.
func plugins(opts Options) []apiserver.Plugin {
	out := []apiserver.Plugin{
		{Name: "FlotillaKinds", Interface: admission.NewPlugin(admission.Options{NewID: uuid.NewString, AllowNoExecuteTaints: opts.AllowNoExecuteTaintPolicy})},
		{Name: "FlotillaProtection", Interface: admission.NewProtection()},
	}
	if opts.Claim != nil {
		out = append(out, apiserver.Plugin{Name: "FlotillaClaims", Interface: admission.NewClaiming(opts.Claim)})
	}
	return out
}
