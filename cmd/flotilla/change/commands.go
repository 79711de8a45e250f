package change

import (
	"io"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/kubectl/pkg/cmd/annotate"
	"k8s.io/kubectl/pkg/cmd/create"
	kubectldelete "k8s.io/kubectl/pkg/cmd/delete"
	"k8s.io/kubectl/pkg/cmd/edit"
	"k8s.io/kubectl/pkg/cmd/label"
	"k8s.io/kubectl/pkg/cmd/patch"

	"github.com/flotilla-io/flotilla/cmd/flotilla/fleet"
)

// Commands returns the commands that change the control plane.
func Commands(f *fleet.Flags) []*cobra.Command {
	commands := []*cobra.Command{newApply(f), newPromote(f)}
	for _, make := range []func(*fleet.Flags, genericiooptions.IOStreams) *cobra.Command{
		func(f *fleet.Flags, s genericiooptions.IOStreams) *cobra.Command {
			return create.NewCmdCreate(f.Factory(), s)
		},
		func(f *fleet.Flags, s genericiooptions.IOStreams) *cobra.Command {
			return kubectldelete.NewCmdDelete(f.Factory(), s)
		},
		func(f *fleet.Flags, s genericiooptions.IOStreams) *cobra.Command {
			return edit.NewCmdEdit(f.Factory(), s)
		},
		func(f *fleet.Flags, s genericiooptions.IOStreams) *cobra.Command {
			return patch.NewCmdPatch(f.Factory(), s)
		},
		func(f *fleet.Flags, s genericiooptions.IOStreams) *cobra.Command {
			return label.NewCmdLabel(f.Factory(), s)
		},
		func(f *fleet.Flags, s genericiooptions.IOStreams) *cobra.Command {
			return annotate.NewCmdAnnotate(program, f.Factory(), s)
		},
	} {
		late := &lateStreams{}
		cmd := make(f, late.streams())
		adapt(cmd, f, late)
		commands = append(commands, cmd)
	}
	return commands
}

// program is the name of the program in the examples.
const program = "flotilla"

// lateStreams are the streams of a command that is built before they are known.
type lateStreams struct {
	in       io.Reader
	out, err io.Writer
}

// take sets the streams to those of the command that runs. Some commands of kubectl keep the
// streams from their constructor, so these forward to the current ones.
func (l *lateStreams) take(cmd *cobra.Command) {
	l.in, l.out, l.err = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
}

func (l *lateStreams) streams() genericiooptions.IOStreams {
	return genericiooptions.IOStreams{
		In:     lateReader{l},
		Out:    lateWriter(func() io.Writer { return l.out }),
		ErrOut: lateWriter(func() io.Writer { return l.err }),
	}
}

type lateWriter func() io.Writer

// Write writes to the current stream.
func (w lateWriter) Write(data []byte) (int, error) { return w().Write(data) }

type lateReader struct{ of *lateStreams }

// Read reads from the current stream.
func (r lateReader) Read(data []byte) (int, error) { return r.of.in.Read(data) }
