package selfregistration

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// ErrRefused says that the cluster cannot be what its flags ask for, and that asking
// again changes nothing.
var ErrRefused = errors.New("the cluster cannot be registered")

// What a cluster may report, as in --report-secrets.
const (
	KubeCredentials  = "KubeCredentials"
	KubeImpersonator = "KubeImpersonator"
	None             = "None"
)

// Options identify the cluster. Name, Hub and Member are required.
type Options struct {
	// Name of the cluster.
	Name string
	// Hub and Member are clients of the two sides. The hub's has few rights.
	Hub, Member client.Client
	// Namespace holds accounts in the member; empty means karmada-cluster.
	Namespace string
	// Endpoint is the member's URL for the hub, if the hub can reach it; empty leaves what the
	// hub has.
	Endpoint string
	// Proxy is the URL of a proxy on that way; empty leaves what the hub has.
	Proxy string
	// Insecure makes the hub skip the verification of the member's certificate.
	Insecure bool
	// Report lists what is handed out: KubeCredentials, KubeImpersonator or None.
	Report []string
	// Provider, Region and Zones say where the cluster is; empty declares nothing. The
	// hub uses them once an administrator has declared the same.
	Provider, Region string
	Zones            []string
	// Version of this program; empty and "devel" fit every hub.
	Version string
}

// Registration is one cluster's entry. Use New.
type Registration struct{ options Options }

// New returns the registration of a cluster, which is not registered yet.
func New(o Options) *Registration {
	if o.Namespace == "" {
		o.Namespace = workv1alpha2.NamespaceKarmadaCluster
	}
	return &Registration{options: o}
}

// Check returns an error for options that are wrong by themselves, without a request.
func Check(report []string) error {
	for _, what := range report {
		if !slices.Contains([]string{KubeCredentials, KubeImpersonator, None}, what) {
			return fmt.Errorf("%q is not what a cluster may report: use %s, %s or %s", what, KubeCredentials, KubeImpersonator, None)
		}
	}
	if slices.Contains(report, None) && len(report) > 1 {
		return fmt.Errorf("%s goes with nothing else", None)
	}
	return nil
}

func (r *Registration) reports(what string) bool { return slices.Contains(r.options.Report, what) }

// Register creates the entry on the hub, or brings it up to date. It is idempotent.
// Errors: ErrRefused, or what either side answered.
func (r *Registration) Register(ctx context.Context) error {
	if err := r.fits(ctx); err != nil {
		return err
	}
	id, err := r.identity(ctx)
	if err != nil {
		return err
	}
	if err := r.unique(ctx, id); err != nil {
		return err
	}
	cluster, err := r.cluster(ctx, id)
	if err != nil {
		return err
	}
	if err := r.pull(ctx); err != nil {
		return err
	}
	if !r.reports(KubeCredentials) && !r.reports(KubeImpersonator) {
		return nil
	}
	return r.handOut(ctx, cluster)
}

func (r *Registration) identity(ctx context.Context) (string, error) {
	system := &corev1.Namespace{}
	if err := r.options.Member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("read the identity of the member: %w", err)
	}
	return string(system.UID), nil
}

// unique refuses a cluster that the hub has under another name. A hub that does
// not show its clusters to agents checks that itself.
func (r *Registration) unique(ctx context.Context, id string) error {
	var clusters clusterv1alpha1.ClusterList
	err := r.options.Hub.List(ctx, &clusters)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil:
		return fmt.Errorf("list the clusters of the hub: %w", err)
	}
	for i := range clusters.Items {
		if c := &clusters.Items[i]; c.Name != r.options.Name && c.Spec.ID == id {
			return fmt.Errorf("%w: it is registered as %s: %s that first, or use that name", ErrRefused, c.Name, identity.Leaving(c.Spec.SyncMode))
		}
	}
	return nil
}

// cluster makes the Cluster, or brings the one that is there up to date.
func (r *Registration) cluster(ctx context.Context, id string) (*clusterv1alpha1.Cluster, error) {
	current := &clusterv1alpha1.Cluster{}
	err := r.options.Hub.Get(ctx, client.ObjectKey{Name: r.options.Name}, current)
	if apierrors.IsNotFound(err) {
		return r.create(ctx, id)
	}
	if err != nil {
		return nil, fmt.Errorf("read cluster %s: %w", r.options.Name, err)
	}
	switch {
	case current.Spec.SyncMode != clusterv1alpha1.Pull:
		return nil, fmt.Errorf("%w: %s is in push mode on the hub: unjoin it first, or choose another name", ErrRefused, r.options.Name)
	case current.Spec.ID != "" && current.Spec.ID != id:
		return nil, fmt.Errorf("%w: the name %s is that of another cluster, with the id %s, and this one has %s: choose another name, or unregister that one first",
			ErrRefused, r.options.Name, current.Spec.ID, id)
	case !current.DeletionTimestamp.IsZero():
		return current, nil
	}
	updated := current.DeepCopy()
	if updated.Spec.ID == "" {
		updated.Spec.ID = id
	}
	r.fill(updated)
	if equality.Semantic.DeepEqual(current.Spec, updated.Spec) && maps.Equal(current.Annotations, updated.Annotations) {
		return current, nil
	}
	if err := r.options.Hub.Patch(ctx, updated, client.MergeFromWithOptions(current, client.MergeFromWithOptimisticLock{})); err != nil {
		return nil, r.explain("update cluster "+r.options.Name, err)
	}
	log.FromContext(ctx).Info("Updated the cluster on the hub", "cluster", r.options.Name)
	r.report(ctx, updated)
	return updated, nil
}

func (r *Registration) create(ctx context.Context, id string) (*clusterv1alpha1.Cluster, error) {
	if err := r.free(ctx); err != nil {
		return nil, err
	}
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: r.options.Name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Pull},
	}
	r.fill(cluster)
	if err := r.options.Hub.Create(ctx, cluster); err != nil {
		return nil, r.explain("register cluster "+r.options.Name, err)
	}
	log.FromContext(ctx).Info("Registered the cluster on the hub", "cluster", r.options.Name, "id", id)
	r.report(ctx, cluster)
	return cluster, nil
}

// free refuses a cluster that belongs to another hub. One that is registered already and
// lost its member to another hub says so in its conditions.
func (r *Registration) free(ctx context.Context) error {
	hub, err := join.HubIdentity(ctx, r.options.Hub)
	if err != nil {
		return err
	}
	err = join.Unclaimed(ctx, join.ClaimOptions{Member: r.options.Member, Hub: hub, Cluster: r.options.Name})
	switch {
	case errors.Is(err, join.ErrClaimed):
		return fmt.Errorf("%w: %w (--take-over is a flag of flotilla register)", ErrRefused, err)
	case errors.Is(err, join.ErrItself):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

// pull sets the mode in the claim of a member that its hub had in push mode before: it is in
// pull mode now on the hub.
func (r *Registration) pull(ctx context.Context) error {
	hub, err := join.HubIdentity(ctx, r.options.Hub)
	if err != nil || hub == "" {
		return err
	}
	err = join.Claim(ctx, join.ClaimOptions{Member: r.options.Member, Hub: hub, Cluster: r.options.Name, Mode: hubclaim.Pull})
	if errors.Is(err, join.ErrClaimed) {
		return nil // that is reported where the member is observed
	}
	return err
}

// report logs which declared properties the hub has recorded but does not use.
func (r *Registration) report(ctx context.Context, cluster *clusterv1alpha1.Cluster) {
	asked, err := identity.ParseProperties(cluster.Annotations[identity.RequestedAnnotation])
	if err == nil && !asked.IsZero() {
		log.FromContext(ctx).Info("The hub does not go by what this agent says of its cluster: an administrator of the hub has to approve it",
			"says", asked.Words(), "approve", fmt.Sprintf("flotilla patch cluster %s --type merge -p '%s'", cluster.Name, asked.Patch()))
	}
}

// fill sets what the cluster reports about itself.
func (r *Registration) fill(cluster *clusterv1alpha1.Cluster) {
	o, spec := r.options, &cluster.Spec
	// The Secret's namespace is the hub's to say, the account's is the member's.
	delete(cluster.Annotations, clusterv1alpha1.AccountsNamespaceAnnotation)
	if r.reports(KubeImpersonator) && o.Namespace != workv1alpha2.NamespaceKarmadaCluster {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1alpha1.AccountsNamespaceAnnotation, o.Namespace)
	}
	if o.Endpoint != "" {
		spec.APIEndpoint, spec.InsecureSkipTLSVerification = o.Endpoint, o.Insecure
	}
	if o.Proxy != "" {
		spec.ProxyURL = o.Proxy
	}
	spec.SecretRef, spec.ImpersonatorSecretRef = nil, nil
	if r.reports(KubeCredentials) {
		spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: o.Name}
	}
	if r.reports(KubeImpersonator) {
		spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: join.ImpersonatorSecret(o.Name)}
	}
	if o.Provider != "" {
		spec.Provider = o.Provider
	}
	if o.Region != "" {
		spec.Region = o.Region
	}
	if len(o.Zones) > 0 {
		spec.Zones = o.Zones
	}
}

// explain distinguishes what the hub refuses for good from what may work later.
func (r *Registration) explain(what string, err error) error {
	if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) && strings.Contains(err.Error(), "registered as ") {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

// handOut creates the accounts in the member, and stores their tokens on the hub.
func (r *Registration) handOut(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	if !cluster.DeletionTimestamp.IsZero() {
		return nil
	}
	secrets, err := join.Issue(ctx, join.IssueOptions{
		Name: r.options.Name, Member: r.options.Member, Namespace: r.options.Namespace,
		Own: r.reports(KubeCredentials), Impersonator: r.reports(KubeImpersonator),
	})
	if err != nil {
		return err
	}
	for _, secret := range secrets {
		secret.Namespace = workv1alpha2.NamespaceKarmadaCluster
		secret.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: clusterv1alpha1.GroupVersion.String(), Kind: clusterv1alpha1.ResourceKindCluster, Name: cluster.Name, UID: cluster.UID,
		}}
		if err := r.put(ctx, secret); err != nil {
			return err
		}
	}
	return nil
}

// put creates or updates a Secret on the hub.
func (r *Registration) put(ctx context.Context, secret *corev1.Secret) error {
	name := client.ObjectKeyFromObject(secret)
	current := &corev1.Secret{}
	err := r.options.Hub.Get(ctx, name, current)
	switch {
	case apierrors.IsNotFound(err):
		if err := r.options.Hub.Create(ctx, secret); err != nil {
			return fmt.Errorf("bring secret %s to the hub: %w", name, err)
		}
		log.FromContext(ctx).Info("Brought credentials of the member to the hub", "secret", name.String())
		return nil
	case err != nil:
		return fmt.Errorf("read secret %s on the hub: %w", name, err)
	case equality.Semantic.DeepEqual(current.Data, secret.Data) && equality.Semantic.DeepEqual(current.OwnerReferences, secret.OwnerReferences):
		return nil
	}
	updated := current.DeepCopy()
	updated.Data, updated.OwnerReferences = secret.Data, secret.OwnerReferences
	if err := r.options.Hub.Patch(ctx, updated, client.MergeFrom(current)); err != nil {
		return fmt.Errorf("bring secret %s to the hub: %w", name, err)
	}
	log.FromContext(ctx).Info("Brought credentials of the member to the hub", "secret", name.String())
	return nil
}
