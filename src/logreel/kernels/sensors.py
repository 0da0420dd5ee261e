"""Kernels of sensors: points of Velodyne packets, in one pass over packets of 1206 bytes.

A packet is 12 blocks of 100 bytes: u16 flag, u16 azimuth in hundredths of a degree, 32 times u16 distance in 2 mm and
u8 intensity. Six bytes follow, of which the fifth is 0x39 for dual returns.

laser  float32[8, 64]  per laser: cosine and sine of its elevation, cosine and sine of its azimuth correction, metres
                       to add to the distance, vertical and horizontal offset in metres, azimuth correction in degrees

Axes of the points are x forward (azimuth 0), y left, z up.
"""

import cython

if not cython.compiled:
    raise ImportError("logreel.kernels is not compiled: run `pip install -e .` (needs gcc)")

from cython.cimports.logreel.kernels.loads import bytes_of, u16

u8p = cython.typedef(cython.pointer[cython.const[cython.uchar]])
f32p = cython.typedef(cython.pointer[cython.const[cython.float]])

VELODYNE_PACKET, VELODYNE_BLOCK, VELODYNE_BLOCKS, VELODYNE_LASERS = 1206, 100, 12, 32
VELODYNE_UPPER, VELODYNE_LOWER = 0xEEFF, 0xDDFF


def velodyne_points(
    buf: cython.const[cython.uchar][::1],
    offset: cython.const[cython.longlong][::1],
    stamp: cython.const[cython.longlong][::1],
    turn: cython.const[cython.float][:, ::1],
    laser: cython.const[cython.float][:, ::1],
    delay: cython.const[cython.longlong][:, :, ::1],
    ring_of: cython.const[cython.uchar][::1],
    two_banks: cython.bint,
    xyz: cython.float[:, ::1],
    intensity: cython.uchar[::1],
    ring: cython.uchar[::1],
    azimuth: cython.float[::1],
    time: cython.longlong[::1],
    count: cython.longlong[::1],
):
    """Fill the points of the packets at *offset*, in their order; returns of distance 0 are left out.

    buf       uint8[b]
    offset    int64[n]        starts of packets; the caller has checked that each ends in *buf*
    stamp     int64[n]        ns of each packet
    turn      float32[2, 36000]  sine and cosine of every azimuth
    laser     float32[8, 64]  see above; lasers 32 to 63 are the lower bank
    delay     int64[2, 12, 32]  ns to add to the stamp for each laser: with single return, and with dual return
    ring_of   uint8[64]       rank of each laser from below
    two_banks bool            flag 0xDDFF is the lower bank; False: such blocks have no points
    xyz       float32[3, m], and the others [m]: filled; m >= 384 n
    count     int64[n]        number of points of each packet

    Returns the number of points of all packets.
    """
    n: cython.Py_ssize_t = offset.shape[0]
    i: cython.Py_ssize_t
    k: cython.int
    j: cython.int
    bank: cython.int
    dual: cython.int
    used: cython.longlong = 0
    before: cython.longlong
    p: u8p
    raw: cython.ushort
    flag: cython.ushort
    at: cython.ushort
    s: cython.float
    c: cython.float
    degrees: cython.float
    most: cython.float = 0
    f: f32p
    far: cython.float[32]
    x: cython.float[32]
    y: cython.float[32]
    z: cython.float[32]
    a: cython.float[32]
    sine: cython.float
    cosine: cython.float
    flat: cython.float
    px: cython.pointer[cython.float] = cython.address(xyz[0, 0])
    py: cython.pointer[cython.float] = cython.address(xyz[1, 0])
    pz: cython.pointer[cython.float] = cython.address(xyz[2, 0])
    pi: cython.pointer[cython.uchar] = cython.address(intensity[0])
    pr: cython.pointer[cython.uchar] = cython.address(ring[0])
    pa: cython.pointer[cython.float] = cython.address(azimuth[0])
    pt: cython.pointer[cython.longlong] = cython.address(time[0])
    b: u8p = bytes_of(buf)
    with cython.nogil:
        for j in range(64):
            # The largest azimuth correction.
            if laser[7, j] > most:
                most = laser[7, j]
            if -laser[7, j] > most:
                most = -laser[7, j]
        for i in range(n):
            before = used
            dual = 1 if b[offset[i] + 1204] == 0x39 and not two_banks else 0
            for k in range(12):
                p = b + offset[i] + 100 * k
                flag = u16(p)
                at = u16(p + 2)
                if at >= 36000 or not (flag == 0xEEFF or (two_banks and flag == 0xDDFF)):
                    continue
                bank = 32 if flag == 0xDDFF else 0
                s = turn[0, at]
                c = turn[1, at]
                degrees = cython.cast(cython.float, at) * cython.cast(cython.float, 0.01)
                p += 4
                f = cython.address(laser[0, 0]) + bank
                for j in range(32):
                    far[j] = cython.cast(cython.float, u16(p + 3 * j))
                for j in range(32):
                    # Sine and cosine of azimuth minus correction.
                    sine = s * f[128 + j] - c * f[192 + j]
                    cosine = c * f[128 + j] + s * f[192 + j]
                    flat = far[j] * cython.cast(cython.float, 0.002) + f[256 + j]
                    z[j] = flat * f[64 + j] + f[320 + j] * f[j]
                    flat = flat * f[j] - f[320 + j] * f[64 + j]
                    x[j] = flat * cosine + f[384 + j] * sine
                    y[j] = f[384 + j] * cosine - flat * sine
                    a[j] = degrees - f[448 + j]
                # A separate loop because it branches: the loop above can be vectorised.
                if degrees < most or degrees + most >= 360:
                    for j in range(32):
                        a[j] = a[j] + 360 if a[j] < 0 else a[j]
                        a[j] = a[j] - 360 if a[j] >= 360 else a[j]
                for j in range(32):
                    raw = u16(p + 3 * j)
                    # Always written, kept only if there was a return: no branch to predict.
                    px[used] = x[j]
                    py[used] = y[j]
                    pz[used] = z[j]
                    pa[used] = a[j]
                    pi[used] = p[3 * j + 2]
                    pr[used] = ring_of[bank + j]
                    pt[used] = stamp[i] + delay[dual, k, j]
                    used += raw != 0
            count[i] = used - before
    return used
