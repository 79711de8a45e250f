package registrar

import (
	"context"
	"net/http"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
)

// Registrar stands between who may do what, and the server. Use New.
type Registrar struct {
	cluster Clusters
}

// Clusters returns the Cluster of a name; an error that is NotFound if there is none.
type Clusters func(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error)

// New returns a Registrar of a fleet.
func New(cluster Clusters) *Registrar { return &Registrar{cluster: cluster} }

// Authorize lets Karmada's clients ask for what Handle answers. All else is next's to
// say, but for the maker of rights: it may do nothing else, whatever roles say.
func (r *Registrar) Authorize(next authorizer.Authorizer) authorizer.Authorizer {
	return authorizer.AuthorizerFunc(func(ctx context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
		if a.GetUser() == nil {
			return next.Authorize(ctx, a)
		}
		cluster, agent := identity.ClusterOfAgent(a.GetUser().GetName())
		switch {
		case !agent:
			return next.Authorize(ctx, a)
		case cluster != identity.Generator:
			lists := listsClusters(a.GetAPIGroup(), a.GetResource(), a.GetSubresource(), a.GetVerb())
			if isElection(cluster, a) || lists && (a.GetName() == "" || a.GetName() == cluster) {
				return authorizer.DecisionAllow, "", nil
			}
			return next.Authorize(ctx, a)
		case !a.IsResourceRequest():
			return next.Authorize(ctx, a)
		case asksForRights(a):
			return authorizer.DecisionAllow, "", nil
		}
		return authorizer.DecisionDeny, "it asks for the rights of an agent, and for nothing else", nil
	})
}

// isElection reports whether the agent of a cluster asks for its Lease. What name a new one
// has is seen in admission.
func isElection(cluster string, a authorizer.Attributes) bool {
	if a.GetAPIGroup() != coordinationv1.GroupName || a.GetResource() != "leases" || a.GetSubresource() != "" || a.GetNamespace() != workv1alpha2.NamespaceKarmadaSystem {
		return false
	}
	if a.GetVerb() == "create" {
		return true
	}
	return a.GetName() == identity.ElectionLease(cluster) && slices.Contains([]string{"get", "update", "patch"}, a.GetVerb())
}

// listsClusters reports whether somebody lists or watches Clusters.
func listsClusters(group, resource, subresource, verb string) bool {
	return group == clusterv1alpha1.GroupName && resource == clusterv1alpha1.ResourcePluralCluster && subresource == "" && (verb == "list" || verb == "watch")
}

// asksForRights reports whether a request is about what rights are made of.
func asksForRights(a authorizer.Attributes) bool {
	if a.GetSubresource() != "" {
		return false
	}
	if a.GetAPIGroup() == "" && a.GetResource() == "namespaces" {
		return slices.Contains([]string{"get", "create"}, a.GetVerb())
	}
	return a.GetAPIGroup() == rbacv1.GroupName && a.GetAPIVersion() == rbacv1.SchemeGroupVersion.Version &&
		slices.Contains([]string{"clusterroles", "clusterrolebindings", "roles", "rolebindings"}, a.GetResource()) &&
		slices.Contains([]string{"get", "create", "update", "delete"}, a.GetVerb())
}

// Handle answers what the maker of rights asks for, and has agents see their own Cluster
// alone where they ask for all. Requests come to it once they are allowed.
func (r *Registrar) Handle(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		who, known := request.UserFrom(req.Context())
		info, found := request.RequestInfoFrom(req.Context())
		if !known || !found || !info.IsResourceRequest {
			next.ServeHTTP(w, req)
			return
		}
		cluster, agent := identity.ClusterOfAgent(who.GetName())
		switch {
		case agent && cluster == identity.Generator:
			r.answer(w, req, info)
			return
		case agent && info.Name == "" && listsClusters(info.APIGroup, info.Resource, info.Subresource, info.Verb):
			req = only(req, cluster)
		}
		next.ServeHTTP(w, req)
	})
}

// only returns a request for what it asks for, of one object alone.
func only(req *http.Request, name string) *http.Request {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	query := req.URL.Query()
	for _, more := range query["fieldSelector"] {
		if more != "" {
			selector += "," + more
		}
	}
	query.Set("fieldSelector", selector)
	at := *req.URL
	at.RawQuery = query.Encode()
	out := req.Clone(req.Context())
	out.URL, out.RequestURI = &at, at.RequestURI()
	return out
}
