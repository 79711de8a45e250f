package registration

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
	"github.com/flotilla-io/flotilla/internal/command"
	"github.com/flotilla-io/flotilla/internal/registration/token"
)

func newTokenList(f *fleet.Flags) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Aliases: []string{"ls"},
		Short:   "List the tokens by which clusters register",
		Long:    `List the bootstrap tokens, by their public part: a token itself is shown by create alone.`,
		Args:    command.Exactly(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			hub, err := f.Client()
			if err != nil {
				return fleet.Describe(err)
			}
			all, err := token.List(cmd.Context(), hub)
			if err != nil {
				return fleet.Describe(err)
			}
			return printTokens(cmd.OutOrStdout(), all, time.Now())
		},
	}
}

func printTokens(out io.Writer, all []token.Info, now time.Time) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	_, _ = fmt.Fprintln(table, "TOKEN ID\tTTL\tEXPIRES\tUSAGES\tDESCRIPTION\tEXTRA GROUPS")
	for _, info := range all {
		left, expires := "<forever>", "<never>"
		if !info.Expires.IsZero() {
			left, expires = duration.ShortHumanDuration(info.Expires.Sub(now)), info.Expires.UTC().Format(time.RFC3339)
		}
		if info.Used {
			left = "<used>"
		} else if !info.Expires.IsZero() && !info.Expires.After(now) {
			left = "<expired>"
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", info.ID, left, expires,
			orNone(strings.Join(info.Usages, ",")), orNone(plain(info.Description)), orNone(strings.Join(info.Groups, ",")))
	}
	return table.Flush()
}

// plain keeps text of others on its line, and from doing anything to a terminal.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || 0x80 <= r && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

func orNone(text string) string {
	if text == "" {
		return "<none>"
	}
	return text
}
