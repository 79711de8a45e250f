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

// enroll gets the first certificate by a bootstrap token, unless there is one that
// is good and the hub takes it: after the cluster was unregistered it does not. Where
// there is one and the token is of no use, it is gone on with: the hub may renew one
// that has expired. A hub that is where the flags say, and no longer where it was, is
// followed there.
func (o *options) enroll(ctx context.Context, member *rest.Config) error {
	if o.hub.enrolment.Token == "" {
		return nil
	}
	there, good, err := o.certificate()
	if err != nil || good && o.known(ctx) {
		return err
	}
	if there { // what it knows is on disk: a hub that is away does not keep it from that
		o.hub.enrolment.Timeout = enrolAgain
	}
	err = o.request(ctx, member)
	if err != nil && there && ctx.Err() == nil {
		log.FromContext(ctx).Error(err, "the token is of no use: going on with the certificate that there is")
		return nil
	}
	return err
}

// known reports whether the certificate that there is may be good for something. A hub that is away,
// or just starts, says nothing of that, unless the flags say that it is elsewhere: then it is asked there.
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

// ask asks a hub for the Cluster, which goes first when it is unregistered: the rights of its agent are
// taken one by one after it.
func (o *options) ask(ctx context.Context, cfg *rest.Config) error {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = enrolAgain
	hub, err := client.New(cfg, client.Options{Scheme: kinds.Scheme(), Mapper: kinds.Mapper()})
	if err != nil {
		return fmt.Errorf("set up the connection to the hub: %w", err)
	}
	return hub.Get(ctx, client.ObjectKey{Name: o.clusterName}, &clusterv1alpha1.Cluster{})
}

// answered reports whether a hub answered with an error, and is where it was asked.
func answered(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status)
}

// unregistered reports whether the answer says that the certificate is good for nothing any more.
func unregistered(err error) bool {
	return apierrors.IsNotFound(err) || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)
}

// follow has the kubeconfig of the hub in a file lead to another address of it; an empty context is the current one.
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

// enrolAgain is how long the hub may take to be found where there was a certificate
// before.
const enrolAgain = 5 * time.Second

// certificate reports whether there is a kubeconfig of the hub, and whether the
// certificate in it is good by this machine's clock.
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

// mayHave errs if another control plane has the member, before the token is used: it
// may be good for once.
func (o *options) mayHave(ctx context.Context, byToken, member *rest.Config) error {
	hub, err := registration.Identity(ctx, byToken)
	if err != nil || hub == "" {
		return err // one that does not say who it is here says so to its agents
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
