package registration

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/join"
	"github.com/flotilla-io/flotilla/internal/registration/identity"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

// creation is a call of token create.
type creation struct {
	fleet *fleet.Flags
	opts  token.Options
	taint []string
	ttl   time.Duration
	print string
	// image is the agent's image in the line for register; empty leaves it to the user.
	image string
}

// Values of --print-register-command.
const (
	printToken    = "false"
	printRegister = "true"
	printAgent    = "agent"
)

func newTokenCreate(f *fleet.Flags) *cobra.Command {
	c := &creation{fleet: f}
	cmd := &cobra.Command{
		Use:   "create [TOKEN]",
		Short: "Make a token by which clusters register",
		Long: `Make a bootstrap token, and print it. It is shown this once.

A token is good for any new cluster until it ends. With --cluster-name it is good
for that one cluster, once: this is the way to register a cluster anew that is a
member already, and the safer one for all. Whoever has a token can become a cluster
of the fleet and receives what is placed there.

Where a cluster is, its labels and its taints are what policies select it by. Say
them here: what its agent says of itself counts for nothing until an administrator
has said the same.`,
		Example: `  flotilla token create --cluster-name north --cluster-region eu --print-register-command
  flotilla token create --cluster-name south --print-register-command --karmada-agent-image registry.example/flotilla-agent:v1
  flotilla token create --cluster-name edge-7 --print-register-command=agent
  flotilla token create --ttl 2h --description "the new rack"`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.Exactly("TOKEN")(cmd, args)
			}
			return nil
		},
		RunE: c.run,
	}
	flags := cmd.Flags()
	flags.DurationVar(&c.ttl, "ttl", token.DefaultTTL, "how long the token is good (1s, 2m, 3h); 0 is for ever. With --cluster-name the default is 1h")
	flags.StringSliceVar(&c.opts.Groups, "groups", []string{identity.TokensGroup}, "groups of who comes with the token; they begin with system:bootstrappers:")
	flags.StringSliceVar(&c.opts.Usages, "usages", []string{"signing", "authentication"}, "what the token is for: signing, authentication")
	flags.StringVar(&c.opts.Description, "description", "", "what the token is for, for people")
	flags.StringVar(&c.opts.Cluster, "cluster-name", "", "the only cluster that the token is good for, once")
	flags.StringVar(&c.opts.ClusterID, "cluster-id", "", "UID of the kube-system namespace of that cluster; default is the one that the control plane knows, or any")
	flags.StringVar(&c.opts.Properties.Provider, "cluster-provider", "", "who runs the cluster that registers, for policies to select by")
	flags.StringVar(&c.opts.Properties.Region, "cluster-region", "", "region of the cluster that registers, for policies to select by")
	flags.StringSliceVar(&c.opts.Properties.Zones, "cluster-zones", nil, "zones of the cluster that registers, for policies to select by")
	flags.StringToStringVar(&c.opts.Properties.Labels, "cluster-labels", nil, "labels of the cluster that registers (KEY=VALUE), for policies to select by")
	flags.StringSliceVar(&c.taint, "cluster-taints", nil, "taints of the cluster that registers (KEY=VALUE:EFFECT)")
	flags.StringVar(&c.opts.Properties.ApplyAs, "apply-as", "", "as whom templates are applied in the cluster that registers: "+clusterv1alpha1.ApplyAsAuthor+", as who applied them, as without the flag; or "+clusterv1alpha1.ApplyAsHub+", with all rights")
	flags.StringVar(&c.print, "print-register-command", printToken, "print the whole line to run beside the cluster: with no value that of register, where IMAGE is the image of the agent; with =agent that of flotilla-agent, where KUBECONFIG is the file that leads to the cluster")
	flags.StringVar(&c.image, "karmada-agent-image", "", "image of the agent in the line for register, from a registry that the cluster can pull from")
	flags.Lookup("print-register-command").NoOptDefVal = printRegister
	completeApplyAs(cmd)
	return cmd
}

func (c *creation) run(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		c.opts.Token = args[0]
	}
	if cmd.Flags().Changed("ttl") {
		c.opts.TTL = &c.ttl
	}
	if c.print != printToken && c.print != printRegister && c.print != printAgent {
		return command.Usage(fmt.Errorf("--print-register-command=%s: it is %s, %s or %s", c.print, printRegister, printAgent, printToken))
	}
	if c.print == printAgent && c.opts.Cluster == "" {
		return command.Usage(errors.New("--cluster-name is missing: the line for flotilla-agent names its cluster"))
	}
	if c.image != "" && c.print != printRegister {
		return command.Usage(errors.New("--karmada-agent-image is for the line of register: it goes with --print-register-command"))
	}
	if err := join.CheckApplyAs(c.opts.Properties.ApplyAs); err != nil {
		return command.Usage(fmt.Errorf("--apply-as: %w", err))
	}
	for _, text := range c.taint {
		taint, err := token.ParseTaint(text)
		if err != nil {
			return command.Usage(err)
		}
		c.opts.Properties.Taints = append(c.opts.Properties.Taints, taint)
	}
	hub, err := hubOf(cmd.Context(), c.fleet)
	if err != nil {
		return err
	}
	var line func(token string) string
	if c.print != printToken { // first, so that no token is created that is not shown
		if line, err = c.line(cmd.Context(), cmd.ErrOrStderr()); err != nil {
			return err
		}
	}
	made, _, err := token.Create(cmd.Context(), hub, c.opts)
	switch {
	case errors.Is(err, token.ErrInvalid):
		return command.Usage(err)
	case err != nil:
		return fleet.Describe(err)
	}
	if line != nil {
		made = line(made)
	}
	_, err = fmt.Fprintln(cmd.OutOrStdout(), made)
	return err
}

// imageToFillIn stands for the image of the agent in the line for register: none is published.
const imageToFillIn = "IMAGE"

// line returns a function that makes, from a token, the command line to run beside the cluster.
func (c *creation) line(ctx context.Context, errOut io.Writer) (func(token string) string, error) {
	cfg, err := c.fleet.Config()
	if err != nil {
		return nil, fleet.Describe(err)
	}
	hub, err := readPublished(ctx, cfg)
	if err != nil {
		return nil, err
	}
	here, err := url.Parse(cfg.Host)
	if err != nil || here.Host == "" {
		return nil, fmt.Errorf("the kubeconfig leads to %q, which is no address", cfg.Host)
	}
	hash, address := hub.hash, hub.elsewhere(here.Host)
	if isLoopback(address) {
		_, _ = fmt.Fprintf(errOut, "warning: %s is this machine alone: elsewhere put the address of the control plane in its place, or start flotillad serve with it as --advertise-host\n", address)
	}
	return func(token string) string {
		if c.print == printAgent { // KUBECONFIG is the reader's to fill in: it leads to the member
			return fmt.Sprintf("flotilla-agent --cluster-name %s --hub-endpoint %s --bootstrap-token %s --discovery-token-ca-cert-hash %s --kubeconfig KUBECONFIG", c.opts.Cluster, address, token, hash)
		}
		out := fmt.Sprintf("flotilla register %s --token %s --discovery-token-ca-cert-hash %s", address, token, hash)
		if c.opts.Cluster != "" {
			out += " --cluster-name " + c.opts.Cluster
		}
		return out + " --karmada-agent-image " + cmp.Or(c.image, imageToFillIn)
	}, nil
}
