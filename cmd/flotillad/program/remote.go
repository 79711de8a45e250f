package program

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/reconciler"
	"github.com/flotilla-io/flotilla/reconciler/estimators"
)

// remoteOptions are the flags about the accurate estimators of clusters. They are Karmada's.
type remoteOptions struct {
	on bool
	estimators.Options
}

func (o *remoteOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&o.on, "enable-scheduler-estimator", false,
		"ask accurate estimators of clusters, as flotillad estimator and Karmada's are, where the loops do not see their nodes themselves")
	flags.BoolVar(&o.NoPull, "disable-scheduler-estimator-in-pull-mode", false, "do not ask those of clusters in pull mode")
	flags.DurationVar(&o.Timeout, "scheduler-estimator-timeout", estimators.DefaultTimeout, "how long an answer is waited for at most; a decision waits for less")
	flags.StringVar(&o.Namespace, "scheduler-estimator-service-namespace", estimators.DefaultNamespace, "namespace of the Services that lead to estimators")
	flags.StringVar(&o.Prefix, "scheduler-estimator-service-prefix", estimators.DefaultPrefix, "what the names of these Services begin with, before a hyphen and the name of the cluster")
	flags.IntVar(&o.Port, "scheduler-estimator-port", estimators.DefaultPort, "port of these Services")
	flags.StringVar(&o.Files.CA, "scheduler-estimator-ca-file", "", "CA of estimators")
	flags.StringVar(&o.Files.Cert, "scheduler-estimator-cert-file", "", "certificate to show to estimators")
	flags.StringVar(&o.Files.Key, "scheduler-estimator-key-file", "", "key of the certificate")
	flags.BoolVar(&o.Files.SkipVerify, "insecure-skip-estimator-verify", false, "believe every estimator that it is one")
}

// validate returns an error for values that cannot work, if estimators are used at all.
func (o *remoteOptions) validate() error {
	switch {
	case !o.on:
		return nil
	case o.Timeout <= 0:
		return command.Usage(errors.New("--scheduler-estimator-timeout must be more than 0"))
	case o.Port < 1 || o.Port > 65535:
		return command.Usage(fmt.Errorf("--scheduler-estimator-port %d is no port", o.Port))
	case o.Namespace == "" || o.Prefix == "":
		return command.Usage(errors.New("--scheduler-estimator-service-namespace and --scheduler-estimator-service-prefix must not be empty"))
	}
	if err := o.Files.Check(); err != nil {
		return command.Usage(fmt.Errorf("what --scheduler-estimator-…-file name: %w", err))
	}
	return nil
}

// connect returns a function that creates the client of the estimators; nil if they are not
// used.
func (o *remoteOptions) connect() func(ctrl.Manager, reconciler.Recorder) (reconciler.Estimator, error) {
	if !o.on {
		return nil
	}
	opts := o.Options
	return func(mgr ctrl.Manager, events reconciler.Recorder) (reconciler.Estimator, error) {
		opts := opts
		opts.Events = events
		e := estimators.New(mgr.GetAPIReader(), opts)
		return e, e.Register(mgr)
	}
}
