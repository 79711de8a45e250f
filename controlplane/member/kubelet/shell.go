package kubelet

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// unknown is the exit code of a command that is not known, as shells have it.
const unknown = 127

// run is a command in a container: what it reads and writes is all it does. It
// returns an exit code.
func (c container) run(command []string, in io.Reader, out, errOut io.Writer) int {
	if len(command) == 0 {
		return unknown
	}
	name, args := command[0][strings.LastIndexByte(command[0], '/')+1:], command[1:]
	switch name {
	case "true":
		return 0
	case "false":
		return 1
	case "exit":
		if len(args) == 0 {
			return 0
		}
		code, err := strconv.Atoi(args[0])
		if err != nil {
			return 2
		}
		return code
	case "echo":
		_, _ = fmt.Fprintln(out, strings.Join(args, " "))
		return 0
	case "hostname":
		_, _ = fmt.Fprintln(out, c.pod)
		return 0
	case "env":
		_, _ = fmt.Fprintf(out, "HOSTNAME=%s\nPATH=/bin\n", c.pod)
		return 0
	case "cat":
		_, _ = io.Copy(out, in)
		return 0
	case "sh", "bash":
		return c.shell(args, in, out, errOut)
	}
	_, _ = fmt.Fprintf(errOut, "%s: not found: the container is simulated and knows cat, echo, env, exit, false, hostname, sh and true\n", name)
	return unknown
}

// shell runs one line, or those that it reads, until one says exit.
func (c container) shell(args []string, in io.Reader, out, errOut io.Writer) int {
	if len(args) == 2 && args[0] == "-c" {
		return c.run(strings.Fields(args[1]), in, out, errOut)
	}
	code := 0
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		words := strings.Fields(scanner.Text())
		if len(words) == 0 {
			continue
		}
		code = c.run(words, strings.NewReader(""), out, errOut)
		if words[0] == "exit" {
			break
		}
	}
	return code
}
