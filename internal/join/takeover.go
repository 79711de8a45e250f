package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/flotilla-io/flotilla/api/policy/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
	"github.com/flotilla-io/flotilla/policies/author"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// What becomes of an object that another hub manages when its member is taken
// over.
const (
	// FateOurs: a policy of this hub takes it over, once it is placed in the
	// cluster.
	FateOurs = "becomes ours"
	// FateConflict: this hub asks for it, and leaves it alone until a policy has
	// the conflict resolution Overwrite.
	FateConflict = "conflicts"
	// FateStays: this hub does not ask for it; it stays as it is, and nobody
	// manages it.
	FateStays = "stays"
	// FateTakenOn: control planes act as their users by it, and this one updates
	// it as it needs it.
	FateTakenOn = "is taken on"
	// FateRights: it stays, and gives accounts of this hub the rights that those
	// of the same names had from the other.
	FateRights = "goes on giving rights"
)

// ForeignObject is an object in a member that another hub manages.
type ForeignObject struct {
	// Object is its kind and name, as in "ConfigMap shop/web".
	Object string `json:"object"`
	// Fate is what becomes of it, one of the constants above.
	Fate string `json:"fate"`
}

// TakeOver is what taking over a member means.
type TakeOver struct {
	// From is the claim of the hub that loses the member; nil if none has claimed
	// it.
	From *hubclaim.Claim
	// Objects are what that hub manages there, sorted by fate and name.
	Objects []ForeignObject
	// Unread are the kinds that could not be listed.
	Unread []string
	// Blind means that it is not known what this hub asks for: what counts as
	// staying may be taken over.
	Blind bool
}

// PlanTakeOver returns what taking a member from the hub that has claimed it
// means. It writes nothing. hub is nil if what it would place may not be read:
// everything then counts as staying.
func PlanTakeOver(ctx context.Context, hub client.Reader, hubID string, member client.Reader, config *rest.Config) (*TakeOver, error) {
	_, claim, err := claimOf(ctx, member)
	if err != nil || hubclaim.Judge(claim, hubclaim.Claimant{Hub: hubID}) != hubclaim.Anothers {
		return &TakeOver{}, err
	}
	wanted, err := wantedHere(ctx, hub)
	if err != nil {
		return nil, err
	}
	out := &TakeOver{From: claim, Blind: hub == nil}
	out.Unread, err = Managed(ctx, config, func(of Served, obj *metav1.PartialObjectMetadata) {
		gk := of.Kind
		if obj.Annotations[workv1alpha2.HubAnnotation] == hubID {
			return
		}
		fate := wanted[objectKey{gk, obj.Namespace, obj.Name}]
		name := strings.TrimPrefix(obj.Namespace+"/"+obj.Name, "/")
		out.Objects = append(out.Objects, ForeignObject{Object: gk.Kind + " " + name, Fate: cmp.Or(fate, fateOfRights(gk, obj.Name), FateStays)})
	})
	slices.SortFunc(out.Objects, func(a, b ForeignObject) int {
		return cmp.Or(strings.Compare(a.Fate, b.Fate), strings.Compare(a.Object, b.Object))
	})
	return out, err
}

// fateOfRights returns what becomes of an object by which the other hub gave
// rights; empty for any other.
func fateOfRights(kind schema.GroupKind, name string) string {
	switch {
	case kind.Group != rbacv1.GroupName:
		return ""
	case name == access.ImpersonatorName || name == access.MastersName:
		return FateTakenOn
	case strings.HasPrefix(name, author.Prefix):
		return FateRights
	default:
		return ""
	}
}

// objectKey identifies an object that a hub may want in members.
type objectKey struct {
	kind            schema.GroupKind
	namespace, name string
}

// wantedHere returns the fate of each object that the hub asks for.
func wantedHere(ctx context.Context, hub client.Reader) (map[objectKey]string, error) {
	out := map[objectKey]string{}
	if hub == nil {
		return out, nil
	}
	var spaces corev1.NamespaceList
	var bindings workv1alpha2.ResourceBindingList
	var wide workv1alpha2.ClusterResourceBindingList
	for _, list := range []client.ObjectList{&spaces, &bindings, &wide} {
		if err := hub.List(ctx, list); err != nil {
			return nil, fmt.Errorf("read what the hub asks for: %w", err)
		}
	}
	for i := range spaces.Items {
		out[objectKey{schema.GroupKind{Kind: "Namespace"}, "", spaces.Items[i].Name}] = FateConflict
	}
	add := func(b workv1alpha2.Binding) {
		spec := b.BindingSpec()
		fate := FateConflict
		if spec.ConflictResolution == policyv1alpha1.ConflictOverwrite {
			fate = FateOurs
		}
		ref := spec.Resource
		out[objectKey{schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind(), ref.Namespace, ref.Name}] = fate
	}
	for i := range bindings.Items {
		add(&bindings.Items[i])
	}
	for i := range wide.Items {
		add(&wide.Items[i])
	}
	return out, nil
}

// Served is a kind as a cluster serves it.
type Served struct {
	Kind     schema.GroupKind
	Resource schema.GroupVersionResource
}

// Managed calls found for each object with the label of managed objects in the
// cluster that config leads to, of every kind that can be listed and deleted
// there. It returns the kinds that could not be listed.
func Managed(ctx context.Context, config *rest.Config, found func(Served, *metav1.PartialObjectMetadata)) (unread []string, err error) {
	httpClient, err := straight(config)
	if err != nil {
		return nil, err
	}
	defer httpClient.CloseIdleConnections()
	return ManagedThrough(ctx, config, httpClient, found)
}

// ManagedThrough is Managed with a given HTTP client.
func ManagedThrough(ctx context.Context, config *rest.Config, through *http.Client, found func(Served, *metav1.PartialObjectMetadata)) (unread []string, err error) {
	p := &listing{}
	err = p.read(ctx, config, through, found)
	return p.unread, err
}

// listing lists the kinds of a cluster, and collects those that could not be.
type listing struct{ unread []string }

func (p *listing) read(ctx context.Context, config *rest.Config, httpClient *http.Client, found func(Served, *metav1.PartialObjectMetadata)) error {
	kinds, err := discovery.NewDiscoveryClientForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("set up the connection to %s: %w", config.Host, err)
	}
	objects, err := metadata.NewForConfigAndClient(config, httpClient)
	if err != nil {
		return fmt.Errorf("set up the connection to %s: %w", config.Host, err)
	}
	served, err := discovery.ServerPreferredResources(kinds)
	if err != nil && len(served) == 0 {
		return fmt.Errorf("read what the cluster serves: %w", err)
	}
	if partly := (*discovery.ErrGroupDiscoveryFailed)(nil); errors.As(err, &partly) {
		for gv := range partly.Groups {
			p.unread = append(p.unread, gv.String())
		}
	}
	for _, of := range served {
		gv, err := schema.ParseGroupVersion(of.GroupVersion)
		if err != nil {
			continue
		}
		for i := range of.APIResources {
			if err := p.list(ctx, objects, gv, &of.APIResources[i], found); err != nil {
				return err
			}
		}
	}
	slices.Sort(p.unread)
	return nil
}

// pageOf is how many objects are requested at once.
const pageOf = 500

// list calls found for the managed objects of one kind. A kind that the server
// refuses is recorded as unread; a connection that fails is an error.
func (p *listing) list(ctx context.Context, objects metadata.Interface, gv schema.GroupVersion, kind *metav1.APIResource, found func(Served, *metav1.PartialObjectMetadata)) error {
	if strings.Contains(kind.Name, "/") || !slices.Contains(kind.Verbs, "list") || !slices.Contains(kind.Verbs, "delete") {
		return nil
	}
	options := metav1.ListOptions{LabelSelector: workv1alpha2.ManagedByKarmadaLabel + "=" + workv1alpha2.ManagedByKarmadaLabelValue, Limit: pageOf}
	for {
		list, err := objects.Resource(gv.WithResource(kind.Name)).List(ctx, options)
		if status := apierrors.APIStatus(nil); errors.As(err, &status) {
			p.unread = append(p.unread, gv.WithResource(kind.Name).GroupResource().String())
			return nil
		}
		if err != nil {
			return fmt.Errorf("list %s in the cluster: %w", kind.Name, err)
		}
		for i := range list.Items {
			found(Served{schema.GroupKind{Group: gv.Group, Kind: kind.Kind}, gv.WithResource(kind.Name)}, &list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
}
