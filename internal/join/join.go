package join

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
)

var (
	// ErrTaken says that the name or the cluster is registered already.
	ErrTaken = errors.New("already registered")
	// ErrName says that the name cannot be that of a cluster.
	ErrName = errors.New("not a name for a cluster")
)

// Options say what is joined to what. Name, Hub, Member and MemberConfig are
// required.
type Options struct {
	// Name of the cluster on the hub.
	Name string
	// Hub and Member are clients that may do everything on their side.
	Hub, Member client.Client
	// MemberConfig is how the hub is to reach the member: its address, its CA and
	// its proxy are taken, its credentials are not.
	MemberConfig *rest.Config
	// Namespace holds accounts in the member and credentials on the hub; empty
	// means karmada-cluster.
	Namespace string
	// Provider, Region and Zones say where the cluster is.
	Provider, Region string
	Zones            []string
	// DryRun reports the steps without doing them.
	DryRun bool
	// Progress is told of every step; nil tells nobody.
	Progress func(Step)
	// TokenTimeout is how long the member may take to issue tokens; zero means
	// 30 s.
	TokenTimeout time.Duration
}

const (
	defaultTokenTimeout = 30 * time.Second
	tokenPoll           = 100 * time.Millisecond
)

// ImpersonatorAccount is the account in the member that may do nothing but
// impersonate.
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
	return checkName(o.Name)
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

// Join registers the member. It may be run again after it was interrupted.
// Errors: ErrName, ErrTaken, or what either side answered.
func Join(ctx context.Context, o Options) error {
	if err := o.complete(); err != nil {
		return err
	}
	id, err := identity(ctx, o.Member)
	if err != nil {
		return err
	}
	if err := free(ctx, o.Hub, o.Name, id); err != nil {
		return err
	}
	if err := o.leftBehind(ctx); err != nil {
		return err
	}
	member := side{name: "member", client: o.Member, dry: o.DryRun, progress: o.Progress}
	for _, obj := range accounts(o.Name, o.Namespace) {
		if err := member.put(ctx, obj); err != nil {
			return err
		}
	}
	own, err := o.token(ctx, accountOf(o.Name))
	if err != nil {
		return err
	}
	impersonator, err := o.token(ctx, ImpersonatorAccount)
	if err != nil {
		return err
	}
	return o.register(ctx, id, own, impersonator)
}

// identity returns the UID of the member's kube-system namespace.
func identity(ctx context.Context, member client.Reader) (string, error) {
	system := &corev1.Namespace{}
	if err := member.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, system); err != nil {
		return "", fmt.Errorf("read the cluster's identity: %w", err)
	}
	return string(system.UID), nil
}

// free says whether name and cluster may be registered.
func free(ctx context.Context, hub client.Reader, name, id string) error {
	var clusters clusterv1alpha1.ClusterList
	if err := hub.List(ctx, &clusters); err != nil {
		return fmt.Errorf("list the clusters of the hub: %w", err)
	}
	for i := range clusters.Items {
		c := &clusters.Items[i]
		switch {
		case c.Name == name && c.Spec.ID == id:
			return fmt.Errorf("cluster %s is %w", name, ErrTaken)
		case c.Name == name:
			return fmt.Errorf("the name %s is %w for another cluster, with the id %s: choose another name or unjoin that one first", name, ErrTaken, c.Spec.ID)
		case c.Spec.ID == id:
			return fmt.Errorf("this cluster is %w as %s: unjoin that first to give it another name", ErrTaken, c.Name)
		}
	}
	return nil
}

// leftBehind waits until the accounts' namespace of an earlier registration is
// gone from the member, which takes it some seconds after an unjoin.
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

// register writes the hub's side: first the Secrets, so that the Cluster can be
// connected to the moment it appears.
func (o *Options) register(ctx context.Context, id string, own, impersonator *corev1.Secret) error {
	hub := side{name: "hub", client: o.Hub, dry: o.DryRun, progress: o.Progress}
	cluster, ca, err := o.cluster(id, own)
	if err != nil {
		return err
	}
	credentials := hubSecret(o.Namespace, o.Name, map[string][]byte{
		clusterv1alpha1.SecretTokenKey:  own.Data[corev1.ServiceAccountTokenKey],
		clusterv1alpha1.SecretCADataKey: ca,
	})
	impersonation := hubSecret(o.Namespace, impersonatorSecret(o.Name), map[string][]byte{
		clusterv1alpha1.SecretTokenKey: impersonator.Data[corev1.ServiceAccountTokenKey],
	})
	for _, obj := range []client.Object{namespaceOf(o.Namespace), credentials, impersonation} {
		if err := hub.put(ctx, obj); err != nil {
			return err
		}
	}
	if err := hub.create(ctx, cluster); err != nil {
		if apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("the name %s is %w: somebody was quicker", o.Name, ErrTaken)
		}
		return err
	}
	if o.DryRun {
		return nil
	}
	return errors.Join(hub.own(ctx, cluster, credentials), hub.own(ctx, cluster, impersonation))
}

// cluster returns the Cluster, and the CA that its Secret is to hold.
func (o *Options) cluster(id string, own *corev1.Secret) (*clusterv1alpha1.Cluster, []byte, error) {
	config := rest.CopyConfig(o.MemberConfig)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, nil, fmt.Errorf("read the certificates of the cluster's kubeconfig: %w", err)
	}
	ca := config.CAData
	if len(ca) == 0 {
		ca = own.Data[corev1.ServiceAccountRootCAKey]
	}
	proxy, err := proxyOf(config)
	if err != nil {
		return nil, nil, err
	}
	return &clusterv1alpha1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Name: o.Name},
		Spec: clusterv1alpha1.ClusterSpec{
			ID:                          id,
			SyncMode:                    clusterv1alpha1.Push,
			APIEndpoint:                 config.Host,
			SecretRef:                   &clusterv1alpha1.LocalSecretReference{Namespace: o.Namespace, Name: o.Name},
			ImpersonatorSecretRef:       &clusterv1alpha1.LocalSecretReference{Namespace: o.Namespace, Name: impersonatorSecret(o.Name)},
			InsecureSkipTLSVerification: config.Insecure,
			ProxyURL:                    proxy,
			Provider:                    o.Provider,
			Region:                      o.Region,
			Zones:                       o.Zones,
		},
	}, ca, nil
}

// proxyOf returns the proxy that a kubeconfig names; empty for none.
func proxyOf(config *rest.Config) (string, error) {
	if config.Proxy == nil {
		return "", nil
	}
	req, err := http.NewRequest(http.MethodGet, config.Host, nil) //nolint:noctx // never sent
	if err != nil {
		return "", fmt.Errorf("read the address of the cluster: %w", err)
	}
	proxy, err := config.Proxy(req)
	if err != nil || proxy == nil {
		return "", err
	}
	return proxy.String(), nil
}
