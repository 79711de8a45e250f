package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/flotilla-io/flotilla/agent/credentials"
	"github.com/flotilla-io/flotilla/agent/kinds"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/internal/registration"
)

// enroll requests the first certificate with a bootstrap token, unless there is a valid one
// that the hub accepts. The hub does not accept it after the cluster was unregistered. If
// there is a certificate and the token is of no use, the agent keeps the certificate: the
// hub may renew one that has expired. If the hub has moved to the address in the flags, the
// agent uses that address.
func (o *options) enroll(ctx context.Context, member *rest.Config) error {
	if o.hub.enrolment.Token == "" {
		return nil
	}
	there, good, err := o.certificate()
	if err != nil || good && o.known(ctx) {
		return err
	}
	if there { // the agent can work from its disk, so it does not wait long for the hub
		o.hub.enrolment.Timeout = enrolAgain
	}
	err = o.request(ctx, member)
	if err != nil && there && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "the token is of no use: going on with the certificate that there is")
		return nil
	}
	return err
}

// known reports whether the existing certificate may still be accepted. A hub that is away or
// just starts leaves that open, so known returns true. If the flags have another address of
// the hub, known asks there first.
func (o *options) known(ctx context.Context) bool {
	cfg, err := readConfig("--karmada-kubeconfig", o.hubFile(), o.hub.context)
	if err != nil {
		return true
	}
	at, fault := registration.Address(o.hub.enrolment.Endpoint)
	err = o.ask(ctx, cfg)
	if err == nil || fault != nil || at == cfg.Host || answered(err) {
		return !unregistered(err)
	}
	elsewhere := rest.CopyConfig(cfg)
	elsewhere.Host = at
	if err := o.ask(ctx, elsewhere); err != nil {
		log.FromContext(ctx).Info("The hub is not where it was, and --hub-endpoint takes no certificate of it: trying the token", "was", cfg.Host, "hub", at, "reason", err.Error())
		return false
	}
	if err := follow(ctx, o.hubFile(), o.hub.context, at); err != nil {
		log.FromContext(ctx).Error(err, "the hub is at another address, which could not be kept", "was", cfg.Host, "hub", at)
		return true
	}
	log.FromContext(ctx).Info("The hub is at another address now", "was", cfg.Host, "hub", at)
	return true
}

// ask reads the Cluster from a hub. When a cluster is unregistered, its Cluster is deleted
// first, and the rights of its agent are removed one by one after that.
func (o *options) ask(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = enrolAgain
	hub, err := client.New(cfg, client.Options{Scheme: kinds.Scheme(), Mapper: kinds.Mapper()})
	if err != nil {
		return fmt.Errorf("set up the connection to the hub: %w", err)
	}
	return hub.Get(ctx, client.ObjectKey{Name: o.clusterName}, &clusterv1alpha1.Cluster{})
}

// answered reports whether err is an answer of a hub, which is then at that address.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// unregistered reports whether the answer means that the certificate is no longer accepted.
func unregistered(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// follow changes the address of the hub in its kubeconfig file. An empty context means the
// current one.
func follow(ctx context.Context, file, hubContext, at string) error {
	kubeconfig, err := clientcmd.LoadFromFile(file)
	if err != nil {
		return fmt.Errorf("read the kubeconfig of the hub: %w", err)
	}
	name := cmp.Or(hubContext, kubeconfig.CurrentContext)
	if kubeconfig.Contexts[name] == nil || kubeconfig.Clusters[kubeconfig.Contexts[name].Cluster] == nil {
		return fmt.Errorf("the kubeconfig of the hub has no context %q", name)
	}
	kubeconfig.Clusters[kubeconfig.Contexts[name].Cluster].Server = at
	text, err := clientcmd.Write(*kubeconfig)
	if err != nil {
		return fmt.Errorf("write the kubeconfig of the hub: %w", err)
	}
	return credentials.File{Path: file}.Save(ctx, text)
}

// enrolAgain is how long enroll waits for the hub if there is already a certificate.
const enrolAgain = 5 * time.Second

// certificate reports whether there is a kubeconfig of the hub, and whether its certificate
// has not expired by this machine's clock.
func (o *options) certificate() (there, good bool, err error) {
	if _, err := os.Stat(o.hubFile()); errors.Is(err, fs.ErrNotExist) {
		return false, false, nil
	}
	cfg, err := readConfig("--karmada-kubeconfig", o.hubFile(), o.hub.context)
	if err != nil {
		return true, false, err
	}
	if err := rest.LoadTLSFiles(cfg); err != nil || len(cfg.CertData) == 0 {
		return true, true, err
	}
	_, to, err := registration.Life(cfg.CertData)
	return true, time.Now().Before(to), err
}

func (o *options) request(ctx context.Context, member *rest.Config) error {
	clients, err := kubernetes.NewForConfig(member)
	if err != nil {
		return fmt.Errorf("set up the connection to the member: %w", err)
	}
	id, err := members.Identity(ctx, clients)
	if err != nil {
		return err
	}
	hub := o.hub.enrolment
	hub.Report = func(why error) { log.FromContext(ctx).Error(why, "the hub is not found yet, asking again") }
	cfg, err := registration.Discover(ctx, hub)
	if err != nil {
		return fmt.Errorf("find the hub: %w", err)
	}
	if err := o.mayHave(ctx, cfg, member); err != nil {
		return err
	}
	wanted := registration.Options{Cluster: o.clusterName, ClusterID: id, Expiration: registration.DefaultExpiration}
	given, err := registration.Request(ctx, cfg, wanted)
	for errors.Is(err, registration.ErrNotNow) && ctx.Err() == nil { // a person may have to approve it
		log.FromContext(ctx).Error(err, "no certificate yet, asking again")
		given, err = registration.Request(ctx, cfg, wanted)
	}
	if err != nil {
		return fmt.Errorf("get the first certificate: %w", err)
	}
	kubeconfig, err := registration.Kubeconfig(cfg, o.clusterName, given)
	if err != nil {
		return err
	}
	log.FromContext(ctx).Info("Got the first certificate", "hub", cfg.Host)
	return credentials.File{Path: o.hubFile()}.Save(ctx, kubeconfig)
}

// mayHave returns an error if another control plane has claimed the member. It runs before
// the token is used, because a token may be usable only once.
func (o *options) mayHave(ctx context.Context, byToken, member *rest.Config) error {
	hub, err := registration.Identity(ctx, byToken)
	if err != nil || hub == "" {
		return err // a hub that does not publish its identity here does so to its agents
	}
	own, err := client.New(member, client.Options{Scheme: kinds.Scheme(), Mapper: kinds.Mapper()})
	if err != nil {
		return fmt.Errorf("set up the connection to the member: %w", err)
	}
	if err := join.Unclaimed(ctx, join.ClaimOptions{Member: own, Hub: hub, Cluster: o.clusterName}); err != nil {
		return fmt.Errorf("the token is as good as before: %w (--take-over is a flag of flotilla register)", err)
	}
	return nil
}
