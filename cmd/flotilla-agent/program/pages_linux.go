package program

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// unloadProgram releases the memory of the program's own code and constants: half of it is
// used only at the start. The system reads pages that are needed from the file again.
func unloadProgram() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	mappings, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer mappings.Close()
	for _, part := range asInFile(mappings, program) {
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, part.from, part.to-part.from, syscall.MADV_DONTNEED)
	}
}

// span is a range of addresses.
type span struct{ from, to uintptr }

// asInFile returns the mappings of a program's own file whose content is that of the file:
// read-only mappings without a changed page. The loader changes pages if it relocates
// addresses. It returns nil if the mappings cannot be read.
func asInFile(mappings io.Reader, program string) []span {
	var out []span
	var is *span // the current mapping, if it may be one of them
	for lines := bufio.NewScanner(mappings); lines.Scan(); {
		fields := strings.Fields(lines.Text())
		if len(fields) == 0 {
			continue
		}
		if !strings.HasSuffix(fields[0], ":") {
			is = nil
			var s span
			if len(fields) != 6 || fields[5] != program || fields[1] != "r-xp" && fields[1] != "r--p" {
				continue
			}
			if _, err := fmt.Sscanf(fields[0], "%x-%x", &s.from, &s.to); err == nil && s.to > s.from {
				is = &s
			}
			continue
		}
		if is != nil && fields[0] == "Anonymous:" && len(fields) == 3 && fields[1] == "0" {
			out = append(out, *is)
		}
	}
	return out
}
