package join

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

var (
	// ErrTaken means that the name or the cluster is registered already.
	ErrTaken = errors.New("already registered")
	// ErrName means that a cluster cannot have the name.
	ErrName = errors.New("not a name for a cluster")
	// ErrLeaving means that the cluster of this name is about to leave.
	ErrLeaving = errors.New("the cluster is leaving")
	// ErrClaimed means that another hub has claimed the cluster.
	ErrClaimed = errors.New("the cluster belongs to another control plane")
)

// Options are what is joined to what. Name, Hub, Member and MemberConfig are
// required.
type Options struct {
	// Name of the cluster on the hub.
	Name string
	// Hub and Member are clients with all permissions on their side.
	Hub, Member client.Client
	// MemberConfig is how the hub reaches the member. Its address, CA and proxy
	// are used; its credentials are not.
	MemberConfig *rest.Config
	// Allow is what MemberConfig may ask for beyond what is safe.
	Allow Allow
	// Namespace holds accounts in the member and credentials on the hub; empty
	// means karmada-cluster.
	Namespace string
	// Provider, Region and Zones are where the cluster is.
	Provider, Region string
	Zones            []string
	// ApplyAs is as whom Works are applied there: clusterv1alpha1.ApplyAsAuthor or
	// ApplyAsHub. Empty keeps what the Cluster has; the hub sets the former on a
	// new one.
	ApplyAs string
	// Address is where people find the hub; empty if that is not known.
	Address string
	// TakeOver takes the member from another hub that has claimed it.
	TakeOver bool
	// DryRun reports the steps without doing them.
	DryRun bool
	// Progress is called at every step; it may be nil.
	Progress func(Step)
	// TokenTimeout is how long the member may take to issue tokens; zero means
	// 30 s.
	TokenTimeout time.Duration
}

const (
	defaultTokenTimeout = 30 * time.Second
	tokenPoll           = 100 * time.Millisecond
)

// ImpersonatorAccount is the account in the member that may only impersonate.
const ImpersonatorAccount = "karmada-impersonator"

func (o *Options) complete() error {
	if o.Namespace == "" {
		o.Namespace = workv1alpha2.NamespaceKarmadaCluster
	}
	if o.Progress == nil {
		o.Progress = func(Step) {}
	}
	if o.TokenTimeout == 0 {
		o.TokenTimeout = defaultTokenTimeout
	}
	if err := checkName(o.Name); err != nil || o.MemberConfig == nil {
		return err
	}
	if err := CheckApplyAs(o.ApplyAs); err != nil {
		return err
	}
	return o.Allow.Check(o.MemberConfig)
}

// CheckApplyAs returns an error for values that Options.ApplyAs cannot have.
func CheckApplyAs(as string) error {
	switch as {
	case "", clusterv1alpha1.ApplyAsAuthor, clusterv1alpha1.ApplyAsHub:
		return nil
	}
	return fmt.Errorf("%q does not say as whom templates are applied: it is %s or %s", as, clusterv1alpha1.ApplyAsAuthor, clusterv1alpha1.ApplyAsHub)
}

func checkName(name string) error {
	if problems := validation.IsDNS1123Label(name); len(problems) > 0 {
		return fmt.Errorf("%q is %w: %s", name, ErrName, strings.Join(problems, "; "))
	}
	if len(name) > clusterv1alpha1.ClusterNameMaxLength {
		return fmt.Errorf("%q is %w: it has %d characters, at most %d are allowed", name, ErrName, len(name), clusterv1alpha1.ClusterNameMaxLength)
	}
	return nil
}

// Join registers the member. After an interruption it may be run again, and
// finishes. If the cluster is registered under the name already, its accounts,
// credentials and address are updated. Errors: ErrName, ErrTaken, ErrLeaving,
// ErrRefused, ErrClaimed, or those of either side.
func Join(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	way, err := wayOf(o.MemberConfig)
	if err != nil {
		return err
	}
	id, err := identity(ctx, o.Member)
	if err != nil {
		return err
	}
	claim := ClaimOptions{Member: o.Member, Cluster: o.Name, Address: o.Address, Mode: hubclaim.Push, TakeOver: o.TakeOver, DryRun: o.DryRun, Progress: o.Progress}
	if claim.Hub, err = HubIdentity(ctx, o.Hub); err != nil {
		return err
	}
	if claim.Place, err = hubPlace(ctx, o.Hub); err != nil {
		return err
	}
	if err := Unclaimed(ctx, claim); err != nil {
		return err
	}
	current, err := registered(ctx, o.Hub, o.Name, id)
	if err != nil {
		return err
	}
	if err := o.leftBehind(ctx); err != nil {
		return err
	}
	// All that may refuse the registration and only reads comes before this first
	// write.
	if err := Claim(ctx, claim); err != nil {
		return err
	}
	member := side{name: "member", client: o.Member, dry: o.DryRun, progress: o.Progress}
	for _, obj := range accounts(o.Name, o.Namespace) {
		if err := member.put(ctx, obj); err != nil {
			return err
		}
	}
	own, err := o.working(ctx, member, way, accountOf(o.Name))
	if err != nil {
		return err
	}
	impersonator, err := o.working(ctx, member, way, ImpersonatorAccount)
	if err != nil {
		return err
	}
	return o.register(ctx, o.desired(current, id, way), way.ca, own, impersonator)
}

// identity returns the UID of the member's kube-system namespace.
func identity(ctx context.Context, member client.Reader) (string, error) {
	system := &corev1.Namespace{}
	if err := member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return string(system.UID), nil
}

// registered returns the Cluster as which the member is registered under the
// name; nil if it is not. It returns an error if the name or the member is taken
// in another way.
func registered(ctx context.Context, hub client.Reader, name, id string) (*clusterv1alpha1.Cluster, error) {
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return nil, fmt.Errorf("list the clusters of the hub: %w", err)
	}
	var found *clusterv1alpha1.Cluster
	for i := range clusters.Items {
		c := &clusters.Items[i]
		switch {
		case c.Name == name && !c.DeletionTimestamp.IsZero():
			return nil, fmt.Errorf("%w: wait until %s has left, or finish it with unjoin, and join then", ErrLeaving, name)
		case c.Name == name && c.Spec.ID != id:
			return nil, fmt.Errorf("the name %s is %w for another cluster, with the id %s: choose another name or unjoin that one first", name, ErrTaken, c.Spec.ID)
		case c.Name == name && c.Spec.SyncMode != clusterv1alpha1.Push:
			return nil, fmt.Errorf("cluster %s is %w in pull mode: unregister it first", name, ErrTaken)
		case c.Name == name:
			found = c
		case c.Spec.ID == id:
			return nil, fmt.Errorf("this cluster is %w as %s: unjoin that first to give it another name", ErrTaken, c.Name)
		}
	}
	return found, nil
}

// leftBehind waits until the accounts' namespace of an earlier registration is
// gone from the member, which takes some seconds after an unjoin.
func (o *Options) leftBehind(ctx context.Context) error {
	err := wait.PollUntilContextTimeout(ctx, tokenPoll, o.TokenTimeout, true, func(ctx context.Context) (bool, error) {
		namespace := &corev1.Namespace{}
		err := o.Member.Get(ctx, client.ObjectKey{Name: o.Namespace}, namespace)
		return err != nil || namespace.DeletionTimestamp.IsZero(), client.IgnoreNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("wait until the member's namespace %s of an earlier registration is gone: %w", o.Namespace, err)
	}
	return nil
}

// token waits for the token that the member issues to an account.
func (o *Options) token(ctx context.Context, account string) (*corev1.Secret, error) {
	if o.DryRun {
		return &corev1.Secret{}, nil
	}
	secret := &corev1.Secret{}
	err := wait.PollUntilContextTimeout(ctx, tokenPoll, o.TokenTimeout, true, func(ctx context.Context) (bool, error) {
		err := o.Member.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: account}, secret)
		return err == nil && len(secret.Data[corev1.ServiceAccountTokenKey]) > 0, client.IgnoreNotFound(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("the cluster issued no token for %s/%s within %s: does its token controller run?", o.Namespace, account, o.TokenTimeout)
	}
	if err != nil {
		return nil, fmt.Errorf("wait for the token of %s/%s: %w", o.Namespace, account, err)
	}
	return secret, nil
}

// desired returns the Cluster that is to be written: a new one, or the present
// one with the new connection and the given place.
func (o *Options) desired(current *clusterv1alpha1.Cluster, id string, w *way) *clusterv1alpha1.Cluster {
	cluster := &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec:       clusterv1alpha1.ClusterSpec{ID: id, SyncMode: clusterv1alpha1.Push},
	}
	if current != nil {
		cluster = current
	}
	if o.ApplyAs != "" {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1alpha1.ApplyAsAnnotation, o.ApplyAs)
	}
	spec := &cluster.Spec
	spec.SecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: o.Namespace, Name: o.Name}
	spec.ImpersonatorSecretRef = &clusterv1alpha1.LocalSecretReference{Namespace: o.Namespace, Name: ImpersonatorSecret(o.Name)}
	spec.APIEndpoint, spec.InsecureSkipTLSVerification, spec.ProxyURL = w.endpoint, w.config.Insecure, w.proxy
	spec.Provider, spec.Region = cmp.Or(o.Provider, spec.Provider), cmp.Or(o.Region, spec.Region)
	if len(o.Zones) > 0 {
		spec.Zones = o.Zones
	}
	if w.config.ServerName != "" {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1alpha1.TLSServerNameAnnotation, w.config.ServerName)
	} else {
		delete(cluster.Annotations, clusterv1alpha1.TLSServerNameAnnotation)
	}
	return cluster
}

// register writes the hub's side: first the Secrets, so that the Cluster can be
// connected to as soon as it exists.
func (o *Options) register(ctx context.Context, cluster *clusterv1alpha1.Cluster, ca []byte, own, impersonator *corev1.Secret) error {
	hub := side{name: "hub", client: o.Hub, dry: o.DryRun, progress: o.Progress}
	credentials := hubSecret(o.Namespace, o.Name, map[string][]byte{
		clusterv1alpha1.SecretTokenKey:  own.Data[corev1.ServiceAccountTokenKey],
		clusterv1alpha1.SecretCADataKey: ca,
	})
	impersonation := hubSecret(o.Namespace, ImpersonatorSecret(o.Name), map[string][]byte{
		clusterv1alpha1.SecretTokenKey: impersonator.Data[corev1.ServiceAccountTokenKey],
	})
	for _, obj := range []client.Object{namespaceOf(o.Namespace), credentials, impersonation} {
		if err := hub.put(ctx, obj); err != nil {
			return err
		}
	}
	err := hub.write(ctx, cluster)
	if apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("the name %s is %w: somebody else joined a cluster under it meanwhile; run the same again to see whether it is this one", o.Name, ErrTaken)
	}
	if err != nil || o.DryRun {
		return err
	}
	return errors.Join(hub.own(ctx, cluster, credentials), hub.own(ctx, cluster, impersonation))
}
