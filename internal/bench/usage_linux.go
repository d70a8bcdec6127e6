package bench

import (
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is what the process and the machine have used so far.
type usage struct {
	at          time.Time
	own         time.Duration // CPU of this process and of its children that have ended
	busy, total float64       // CPU ticks of the machine
}

func now() usage {
	u := usage{at: time.Now()}
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var r syscall.Rusage
		if syscall.Getrusage(who, &r) == nil {
			u.own += time.Duration(r.Utime.Nano() + r.Stime.Nano())
		}
	}
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return u
	}
	line, _, _ := strings.Cut(string(b), "\n")
	for i, f := range strings.Fields(line) {
		v, err := strconv.ParseFloat(f, 64)
		if err != nil || i > 8 {
			continue
		}
		u.total += v
		if i != 4 && i != 5 { // idle, iowait
			u.busy += v
		}
	}
	return u
}

// foreign is the share of the machine's CPU that others used since u, in percent.
func (u usage) foreign() float64 {
	v := now()
	if v.total <= u.total {
		return 0
	}
	const ticks = 100 // USER_HZ
	others := (v.busy - u.busy) - (v.own-u.own).Seconds()*ticks
	return round(max(0, others) / (v.total - u.total) * 100)
}

// rss is the resident memory of the process in MiB.
func rss() float64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, err := strconv.ParseFloat(f[1], 64)
	if err != nil {
		return 0
	}
	return round(pages * float64(os.Getpagesize()) / (1 << 20))
}

// residentOf is the resident memory of a process, now and at most, in MiB.
func residentOf(pid int) (resident, most float64, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, 0, false
	}
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		kib, err := strconv.ParseFloat(f[1], 64)
		switch {
		case err != nil:
		case f[0] == "VmRSS:":
			resident = round(kib / 1024)
		case f[0] == "VmHWM:":
			most = round(kib / 1024)
		}
	}
	return resident, most, resident > 0
}
